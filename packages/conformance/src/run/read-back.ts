// SPDX-License-Identifier: Apache-2.0
// Reads back what is in the buffers of a session and compares it with images as they must be.

import type { DeviceBuffer, Stream } from '@nccl-ext/core';
import { findDifference } from './find-difference.js';
import { type Content, type Image, renderImage } from './image.js';

/** A side of one rank; ranks that hold nothing have no buffer. */
export interface RankSide {
  readonly image: Image;
  readonly buffer: DeviceBuffer | undefined;
}

/** A refit that is on its way; ask for its difference once its streams are synchronized. */
export interface PendingRefit {
  /** The first difference from the oracle, or undefined. */
  difference(): string | undefined;
}

/** Images as they must be; equal ones are rendered once. */
export function renderer(content: Content): (image: Image) => Uint8Array {
  const rendered = new Map<string, Uint8Array>();
  return (image) => {
    const key = `${image.side} ${image.key}`;
    const known = rendered.get(key);
    if (known !== undefined) return known;
    const bytes = new Uint8Array(image.bytes);
    renderImage(bytes, image, 0, content);
    rendered.set(key, bytes);
    return bytes;
  };
}

/** What a side holds once the stream has passed. */
export interface Download {
  readonly image: Image;
  readonly seen: Uint8Array;
}

export function download({ image, buffer }: RankSide, stream: Stream): Download {
  const seen = new Uint8Array(image.bytes);
  if (buffer !== undefined) stream.download(seen, buffer);
  return { image, seen };
}

export function pendingRefit(
  downloads: readonly Download[],
  expectedOf: (image: Image) => Uint8Array,
): PendingRefit {
  return {
    difference: () => {
      for (const { image, seen } of downloads) {
        const difference = findDifference(image, 0, expectedOf(image), seen);
        if (difference !== undefined) return difference;
      }
      return undefined;
    },
  };
}

// SPDX-License-Identifier: Apache-2.0
// Reads the JSON header of a safetensors file and refuses one that does not describe the bytes behind it exactly.
//
// The format: 8 bytes (little-endian length of the header), the header, the data. The header maps names to dtype, shape and
// [begin, end) in the data; `__metadata__` maps strings to strings. Tensors tile the data: no overlap, no hole, nothing
// behind the last one. Source: README of the safetensors project, section "Format".

import { type DType, dtypeBytes } from '@nccl-ext/core';
import { z } from 'zod';
import { checkpointError } from './checkpoint-error.js';
import { dtypeOfSafetensors, safetensorsNames } from './dtype-names.js';
import { findDuplicateKey } from './find-duplicate-key.js';

/** One tensor of a file. */
interface HeaderTensor {
  readonly name: string;
  readonly dtype: DType;
  /** In elements of `dtype`: for f4e2m1x2 the last dimension counts bytes. */
  readonly shape: readonly number[];
  /** Byte range in the data. */
  readonly begin: number;
  readonly end: number;
}

export interface Header {
  /** In the order of their data. */
  readonly tensors: readonly HeaderTensor[];
  readonly metadata: Readonly<Record<string, string>>;
}

/** The longest header that readers of the format accept. */
export const maxHeaderBytes = 100_000_000;

interface Entry {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [begin: number, end: number];
}

const count = z.int().nonnegative();
const entrySchema: z.ZodType<Entry> = z.object({
  dtype: z.string(),
  shape: z.array(count),
  data_offsets: z.tuple([count, count]),
});
const metadataSchema: z.ZodType<Record<string, string>> = z.record(z.string(), z.string());

/**
 * Parses `bytes`, the header without its length, of a file with `dataBytes` behind it.
 *
 * @throws ERR_CHECKPOINT naming `file`, the tensor and what is wrong.
 */
export function parseHeader(bytes: Uint8Array, dataBytes: number, file: string): Header {
  const entries = parseObject(bytes, file);
  const metadata = metadataOf(entries, file);
  entries.delete('__metadata__');
  const tensors = [...entries].map(([name, value]) => tensorOf(name, value, dataBytes, file));
  tensors.sort((a, b) => a.begin - b.begin || a.end - b.end);
  requireTiling(tensors, dataBytes, file);
  return { tensors, metadata };
}

function parseObject(bytes: Uint8Array, file: string): Map<string, unknown> {
  if (bytes[0] !== 0x7b)
    throw checkpointError(file, undefined, "the header must be a JSON object and start with '{'");
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text);
  } catch (cause) {
    throw checkpointError(file, undefined, `the header is not JSON (${(cause as Error).message})`, cause);
  }
  const duplicate = findDuplicateKey(text);
  if (duplicate !== undefined) {
    const [name, ...rest] = duplicate;
    throw rest.length === 0
      ? checkpointError(file, name, 'the header has this name twice')
      : checkpointError(file, name, `the header has ${JSON.stringify(rest.join('.'))} twice`);
  }
  return new Map(Object.entries(value as object));
}

function metadataOf(entries: ReadonlyMap<string, unknown>, file: string): Record<string, string> {
  const result = metadataSchema.safeParse(entries.get('__metadata__') ?? {});
  if (result.success) return result.data;
  throw checkpointError(
    file,
    '__metadata__',
    `must map strings to strings: ${z.prettifyError(result.error)}`,
  );
}

function tensorOf(name: string, value: unknown, dataBytes: number, file: string): HeaderTensor {
  const result = entrySchema.safeParse(value);
  if (!result.success) throw checkpointError(file, name, z.prettifyError(result.error));
  const { dtype: dtypeName, shape: fileShape } = result.data;
  const [begin, end] = result.data.data_offsets;
  const dtype = dtypeOfSafetensors(dtypeName);
  if (dtype === undefined) {
    const known = Object.values(safetensorsNames).join(', ');
    throw checkpointError(file, name, `dtype ${JSON.stringify(dtypeName)} is not known; known are ${known}`);
  }
  if (end < begin) throw checkpointError(file, name, `data_offsets [${begin}, ${end}] end before they begin`);
  if (end > dataBytes) {
    const problem = `data_offsets [${begin}, ${end}] reach beyond the ${dataBytes} data bytes of the file (is it truncated?)`;
    throw checkpointError(file, name, problem);
  }
  const shape = dtype === 'f4e2m1x2' ? packedShape(fileShape, name, file) : fileShape;
  const bytes = shape.reduce((product, extent) => product * extent, 1) * dtypeBytes(dtype);
  if (bytes !== end - begin) {
    const needed = `shape [${fileShape.join(', ')}] of ${dtypeName} needs ${bytes} bytes`;
    throw checkpointError(file, name, `${needed}, but data_offsets [${begin}, ${end}] hold ${end - begin}`);
  }
  return { name, dtype, shape, begin, end };
}

function packedShape(shape: readonly number[], name: string, file: string): readonly number[] {
  const last = shape.at(-1) ?? 1;
  if (last % 2 === 0) return [...shape.slice(0, -1), last / 2];
  throw checkpointError(
    file,
    name,
    `F4 packs two values in a byte, so the last dimension must be even, not ${last}`,
  );
}

function requireTiling(tensors: readonly HeaderTensor[], dataBytes: number, file: string): void {
  let covered = 0;
  let previous: HeaderTensor | undefined;
  for (const tensor of tensors) {
    const { name, begin, end } = tensor;
    if (begin < covered) {
      const [from, to] = [previous!.begin, previous!.end];
      const problem = `data_offsets [${begin}, ${end}] overlap those of ${JSON.stringify(previous!.name)} [${from}, ${to}]`;
      throw checkpointError(file, name, problem);
    }
    if (begin > covered) {
      const problem = `data_offsets [${begin}, ${end}] leave a hole: no tensor has the data bytes [${covered}, ${begin})`;
      throw checkpointError(file, name, problem);
    }
    covered = end;
    previous = tensor;
  }
  if (covered < dataBytes) {
    throw checkpointError(
      file,
      undefined,
      `no tensor has the data bytes [${covered}, ${dataBytes}) at the end of the file`,
    );
  }
}

// SPDX-License-Identifier: Apache-2.0
// Numbers patterns by content in order of first use, whatever objects they are made of.

import { type DimRuns, dtypes } from '@nccl-ext/core';
import type { DigestWriter } from './digest-writer.js';
import { runsText } from './geometry.js';
import type { Part, SidePattern } from './side-pattern.js';

/** A model has thousands of patterns, so they are compared by numbers, not by text. */
export class PatternTable {
  readonly patterns: SidePattern[] = [];
  readonly #numbers = new Map<SidePattern, number>();
  /** The newest pattern by hash of its content; `#older` chains those with the same hash, ended by -1. */
  readonly #newest = new Map<number, number>();
  readonly #older: number[] = [];
  readonly #runs = new Map<DimRuns, number>();
  readonly #runTexts = new Map<string, number>();

  number(pattern: SidePattern): number {
    return this.#numbers.get(pattern) ?? this.#add(pattern);
  }

  #add(pattern: SidePattern): number {
    const hash = this.#hash(pattern);
    const newest = this.#newest.get(hash) ?? -1;
    let number = newest;
    while (number >= 0 && !this.#equal(this.patterns[number]!, pattern)) number = this.#older[number]!;
    if (number < 0) {
      number = this.patterns.push(pattern) - 1;
      this.#older.push(newest);
      this.#newest.set(hash, number);
    }
    this.#numbers.set(pattern, number);
    return number;
  }

  /** `"runs":[...],"patterns":[...]`; a pattern is [dtype, shape, parts], a part [run numbers, ranks, offset, strides]. */
  write(writer: DigestWriter): void {
    writer.text(`"runs":[${[...this.#runTexts.keys()].join()}],"patterns":[`);
    this.patterns.forEach((pattern, i) => {
      writer.text(`${i === 0 ? '' : ','}["${pattern.dtype}",[${pattern.shape.join()}],[`);
      pattern.parts.forEach(({ dims, ranks, byteOffset, byteStrides }, k) => {
        writer.text(k === 0 ? '[[' : ',[[');
        writer.integers(dims.map((dim) => this.#runNumber(dim)));
        writer.text('],[');
        writer.integers(ranks);
        writer.text(`],${byteOffset},[${byteStrides.join()}]]`);
      });
      writer.text(']]');
    });
    writer.text(']');
  }

  #hash({ dtype, shape, parts }: SidePattern): number {
    let hash = dtypes.indexOf(dtype);
    for (let d = 0; d < shape.length; d++) hash = mix(hash, shape[d]!);
    for (let i = 0; i < parts.length; i++) {
      const { dims, ranks, byteOffset, byteStrides } = parts[i]!;
      for (let d = 0; d < dims.length; d++) hash = mix(hash, this.#runNumber(dims[d]!));
      for (let r = 0; r < ranks.length; r++) hash = mix(hash, ranks[r]!);
      hash = mix(hash, byteOffset);
      for (let d = 0; d < byteStrides.length; d++) hash = mix(hash, byteStrides[d]!);
    }
    return hash;
  }

  #equal(a: SidePattern, b: SidePattern): boolean {
    return (
      a.dtype === b.dtype &&
      sameNumbers(a.shape, b.shape) &&
      a.parts.length === b.parts.length &&
      a.parts.every((part, i) => this.#samePart(part, b.parts[i]!))
    );
  }

  #samePart(a: Part, b: Part): boolean {
    return (
      a.byteOffset === b.byteOffset &&
      sameNumbers(a.ranks, b.ranks) &&
      sameNumbers(a.byteStrides, b.byteStrides) &&
      a.dims.every((dim, d) => this.#runNumber(dim) === this.#runNumber(b.dims[d]!))
    );
  }

  #runNumber(dim: DimRuns): number {
    let number = this.#runs.get(dim);
    if (number === undefined) {
      const text = runsText(dim);
      number = this.#runTexts.get(text) ?? this.#runTexts.size;
      this.#runTexts.set(text, number);
      this.#runs.set(dim, number);
    }
    return number;
  }
}

function sameNumbers(a: ArrayLike<number>, b: ArrayLike<number>): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

function mix(hash: number, value: number): number {
  const high = Math.floor(value / 2 ** 32);
  return Math.imul(Math.imul(hash ^ value, 0x01000193) ^ high, 0x85ebca6b);
}

// SPDX-License-Identifier: Apache-2.0
// Turns the ranges of a call into addresses, once it is proved that they lie inside buffers of the rank.

import type { EpCounter, EpRange, ErrorRecord } from '../../contract/index.js';
import { errorRecord, isError } from '../host/errors.js';
import type { BufferState, RankState } from '../host/objects.js';
import { type BackendState, checkRange, foreign } from '../host/state.js';
import type { CounterWords } from './ep-words.js';
import { overlapsReserved } from './reserved-memory.js';

/** Rows start at multiples of this, as the vectors of devices do. */
const rowAlignment = 16;

/** A call being checked: its words, the buffers that it uses, and the first thing that is wrong. */
export class CallRanges {
  readonly words: Float64Array;
  readonly buffers: Set<BufferState> = new Set();
  error: ErrorRecord | undefined;
  readonly #state: BackendState;
  readonly #rank: RankState;
  readonly #op: string;

  constructor(state: BackendState, rank: RankState, op: string, words: Float64Array) {
    this.#state = state;
    this.#rank = rank;
    this.#op = op;
    this.words = words;
  }

  /** Bytes that are read or written; 16-byte aligned if `rows`. Absent is allowed unless `required`. */
  range(
    name: string,
    word: number,
    range: EpRange,
    bytes: number,
    required: boolean,
    alignment: number = rowAlignment,
  ): void {
    this.words[word] = 0;
    if (range.buffer === 0) {
      if (required && bytes > 0) this.refuse(`${name} is missing; it needs ${bytes} bytes`);
      return;
    }
    const buffer = this.#state.owned('buffer', range.buffer, this.#op);
    const wrong = isError(buffer)
      ? buffer
      : (foreign(buffer, this.#rank, this.#op) ??
        checkRange(this.#op, name, range.byteOffset, bytes, buffer.bytes) ??
        overlapsReserved(this.#rank, this.#op, name, buffer, range.byteOffset, bytes));
    if (wrong !== undefined) {
      this.error ??= { ...wrong, rank: this.#rank.rank };
      return;
    }
    if (range.byteOffset % alignment !== 0) {
      this.refuse(`${name} starts at byte ${range.byteOffset}, which must be a multiple of ${alignment}`);
      return;
    }
    this.buffers.add(buffer as BufferState);
    this.words[word] = (buffer as BufferState).address + range.byteOffset;
  }

  /** `entries` integers of 4 or 8 bytes. */
  counter(name: string, words: CounterWords, counter: EpCounter, entries: number, required = false): void {
    const { entryBytes } = counter;
    this.words[words.bytes] = entryBytes;
    if (counter.buffer !== 0 && entryBytes !== 4 && entryBytes !== 8) {
      this.refuse(`${name} has entries of ${String(entryBytes)} bytes; they must have 4 or 8`);
      return;
    }
    this.range(name, words.address, counter, entries * entryBytes, required, entryBytes);
  }

  /** What is written must not overlap what is read. */
  apart(
    written: string,
    writtenWord: number,
    writtenBytes: number,
    read: string,
    readWord: number,
    readBytes: number,
  ): void {
    const [to, from] = [this.words[writtenWord]!, this.words[readWord]!];
    if (to === 0 || from === 0 || writtenBytes === 0 || readBytes === 0) return;
    if (to + writtenBytes <= from || from + readBytes <= to) return;
    this.error ??= errorRecord(
      'ERR_OVERLAP',
      this.#op,
      `${written} and ${read} of ${this.#op} overlap in memory`,
      {
        rank: this.#rank.rank,
        help: 'Give the outputs memory of their own.',
      },
    );
  }

  refuse(detail: string): void {
    this.error ??= errorRecord('ERR_INVALID_ARGUMENT', this.#op, detail, { rank: this.#rank.rank });
  }
}

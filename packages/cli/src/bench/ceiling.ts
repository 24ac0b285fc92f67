// SPDX-License-Identifier: Apache-2.0
// What a reshard is measured against: plain copies on the same hardware.

/** Copies of the same size, over and over. */
export interface Ceiling {
  /** Of one copy. */
  readonly bytes: number;
  /** How it copies, in words. */
  readonly how: string;
  /** Milliseconds of one copy. */
  copy(): Promise<number>;
  dispose(): Promise<void>;
}

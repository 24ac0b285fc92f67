// SPDX-License-Identifier: Apache-2.0
// What a reshard is measured against: plain copies on the same hardware.

/** Copies of the same size, over and over. */
export interface Ceiling {
  /** Of one copy; between GPUs, of each link. */
  readonly bytes: number;
  /** How it copies, in words. */
  readonly how: string;
  /** Milliseconds of one copy, back to back with others where that is how reshards are measured; 0 in a process that only looks on. */
  copy(): Promise<number>;
  dispose(): Promise<void>;
}

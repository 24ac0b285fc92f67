// SPDX-License-Identifier: Apache-2.0
// Mixes (tensor, epoch, linear global index) into 64 bits, so that no shard, tensor or epoch can be taken for another one.

/** What the elements of a tensor are drawn from. */
export interface ValueSource {
  /** Index of the tensor in its case. */
  readonly tensor: number;
  /** Counts refits: every epoch has other values. */
  readonly epoch: number;
  /** Which byte of the mix 1-byte dtypes take; two passes together tell 2^16 values apart. */
  readonly pass: number;
}

/** Four constants that a block of 2^32 consecutive elements shares. */
export type BlockKeys = readonly [lowA: number, lowB: number, highA: number, highB: number];

/** Elements of one block. */
export const blockElements: number = 2 ** 32;

/** The keys of the block that holds elements [block * 2^32, (block + 1) * 2^32). */
export function blockKeys({ tensor, epoch }: ValueSource, block: number): BlockKeys {
  const key = (lane: number): number =>
    scramble(scramble(scramble(scramble(lane, 0x2545_f491), tensor), epoch), block);
  return [key(1), key(2), key(3), key(4)];
}

/**
 * 32 bits for element `index` of a block under two of its keys. For fixed keys a bijection (every step is one), so the
 * elements of a block all differ. The constants are those of MurmurHash3's finaliser.
 */
export function mix32(index: number, keyA: number, keyB: number): number {
  let x = index ^ keyA;
  x = Math.imul(x ^ (x >>> 16), 0x85eb_ca6b) + keyB;
  x = Math.imul(x ^ (x >>> 13), 0xc2b2_ae35);
  return (x ^ (x >>> 16)) >>> 0;
}

function scramble(state: number, value: number): number {
  return mix32(value, state, Math.imul(state, 0x9e37_79b1) + 1);
}

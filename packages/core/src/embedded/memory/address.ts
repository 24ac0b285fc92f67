// SPDX-License-Identifier: Apache-2.0
// One number that says where a byte of the embedded backend lives, so that shared records need no pointers.

/**
 * Bytes between the first addresses of two blocks. An address is `block * blockSpan + offset`: below 2^53 for 8191 blocks
 * of up to a tebibyte, so a double holds it exactly, and ranges compare as numbers. 0 is no address: blocks count from 1.
 */
const blockSpan: number = 2 ** 40;

/** The most blocks that addresses can tell apart. */
export const maxBlocks = 8191;

/** The address of byte `offset` of a block. */
export function addressOf(block: number, offset: number): number {
  return block * blockSpan + offset;
}

/** The block that an address lies in. */
export function blockOf(address: number): number {
  return Math.floor(address / blockSpan);
}

/** The byte within its block. */
export function offsetOf(address: number): number {
  return address % blockSpan;
}

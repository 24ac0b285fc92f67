// SPDX-License-Identifier: Apache-2.0
// What the host sides of both smoke kernels share: the compiled modules, reproducible random numbers, tables for the device.

import { readFileSync } from 'node:fs';

/** Bytes of the compiled kernel <name>, which CMake made and scripts/gpu-bundle.mjs carried. */
export function moduleBytes(name) {
  return readFileSync(new URL(`../../../build/smoke/${name}`, import.meta.url));
}

/** Threads of a block, as in smoke.cuh. */
export const threads = 256;

/** Blocks of a launch: all of them must be resident while they wait for peers, and leave room for every rank of the GPU. */
export function blocksFor(comm) {
  return Math.min(8, Math.max(1, comm.device.smBudget));
}

/** What a buffer holds where no kernel wrote. */
export const untouched = 0xee;

/** xorshift32: the same numbers from the same seed on every rank. */
export function randomFrom(seed) {
  let state = Math.imul(seed + 1, 2654435761) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state;
  };
}

export function randomBytes(bytes, seed) {
  const next = randomFrom(seed);
  const words = new Uint32Array(Math.ceil(bytes / 4));
  for (let i = 0; i < words.length; i++) words[i] = next();
  return new Uint8Array(words.buffer, 0, bytes);
}

/** A device table of 64-bit fields, made and filled by the rank's stream. */
export function tableOf(comm, stream, fields) {
  const words = BigUint64Array.from(fields, (field) => BigInt(field));
  const buffer = comm.allocate(Math.max(8, words.byteLength), 'plain');
  if (words.length > 0) stream.upload(buffer, words);
  return buffer;
}

/** Memory that begins as zeros. */
export function zeros(comm, stream, bytes, kind = 'plain') {
  const buffer = comm.allocate(bytes, kind);
  stream.fill(buffer, 0);
  return buffer;
}

/** Regions of memory one after the other, each on a multiple of 128 bytes. */
export function layoutOf(sizes) {
  const at = {};
  let end = 0;
  for (const [name, bytes] of Object.entries(sizes)) {
    at[name] = end;
    end = Math.ceil((end + bytes) / 128) * 128;
  }
  return { at, bytes: end };
}

/** Where two byte arrays differ first, for the message of an assertion; -1 when they do not. */
export function firstDifference(seen, expected) {
  if (Buffer.compare(seen, expected) === 0) return -1;
  return seen.findIndex((byte, i) => byte !== expected[i]);
}

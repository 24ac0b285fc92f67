// SPDX-License-Identifier: Apache-2.0
// Prints the table of cast_test.cc: what core's castArray makes of random bits. Needs a build (`npx tsc -b`).

import { castArray } from '../../../packages/core/dist/dtype/cast-array.js';
import { dtypeBytes, dtypes } from '../../../packages/core/dist/dtype/dtype.js';

const count = 1 << 16;
const floats = dtypes.slice(0, 6);
const mask = 2n ** 64n - 1n;

/** One element of random bits; f64 often near the exponents of narrower types, wide types often halfway between two values. */
function inputOf(dtype, index, random) {
  if (dtype === 'f64' && index % 2 === 0) {
    const near = (random & 0x800fffffffffffffn) | ((850n + ((random >> 52n) % 340n)) << 52n);
    return index % 8 === 0 ? near & 0xfffff80000000000n : near;
  }
  if (dtype === 'f32' && index % 8 === 0) return random & 0xfff80000n;
  return random & (2n ** BigInt(8 * dtypeBytes(dtype)) - 1n);
}

function hashOf(from, to, seed) {
  const source = new Uint8Array(count * dtypeBytes(from));
  const destination = new Uint8Array(count * dtypeBytes(to));
  let state = BigInt(seed);
  for (let index = 0; index < count; index++) {
    state = (state * 6364136223846793005n + 1442695040888963407n) & mask;
    let bits = inputOf(from, index, state ^ (state >> 29n));
    for (let byte = 0; byte < dtypeBytes(from); byte++, bits >>= 8n)
      source[index * dtypeBytes(from) + byte] = Number(bits & 255n);
  }
  castArray(from, source, to, destination);
  let hash = 0x811c9dc5;
  for (const byte of destination) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}

for (const [i, from] of floats.entries())
  for (const [j, to] of floats.entries())
    if (from !== to)
      process.stdout.write(
        `{${i}, ${j}, 0x${hashOf(from, to, i * 6 + j + 1)
          .toString(16)
          .padStart(8, '0')}},\n`,
      );

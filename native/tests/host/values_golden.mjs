// SPDX-License-Identifier: Apache-2.0
// Prints the table of values_test.cc from syntheticValues of m2n. Needs `npx tsc -b`.

import { dtypeCode } from '../../../packages/core/dist/dtype/dtype.js';
import { dimRuns } from '../../../packages/core/dist/index.js';
import { syntheticValues } from '../../../packages/m2n/dist/refit/values.js';

const elements = 4099;
/** Tensors of more than 2^32 words, so that both halves of a word's number count. */
const shape = [2 ** 35];

for (const dtype of ['f64', 'f32', 'bf16', 'f8e4m3', 'i64', 'u8', 'bool']) {
  for (const start of [0, 4093, 2 ** 34 - 1000]) {
    const values = syntheticValues(new Map([['model.w', { shape, dtype }]]));
    const { seed, masks } = values.generated('model.w');
    const target = new Uint8Array(elements * ({ f64: 8, i64: 8, f32: 4, bf16: 2 }[dtype] ?? 1));
    await values.read('model.w', [dimRuns([{ start, length: elements }])], target);
    let hash = 0x811c9dc5;
    for (const byte of target) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
    const hex = (value) => `0x${value.toString(16).padStart(8, '0')}`;
    const fields = [dtypeCode(dtype), start, hex(seed), hex(masks[0]), hex(masks[1]), hex(hash)];
    process.stdout.write(`    {${fields.join(', ')}},\n`);
  }
}

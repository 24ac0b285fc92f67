// SPDX-License-Identifier: Apache-2.0
// Paths of the embedded backend against a table by hand.

import { expect, it } from 'vitest';
import { castTransform, type MoveTable } from '../../contract/index.js';
import { dtypeCode } from '../../dtype/dtype.js';
import { pathsOf, trafficOf } from './transfer-paths.js';

function table(
  moves: readonly { peer: number; inner: number; count?: number; transform?: number }[],
): MoveTable {
  const zeros = new Float64Array(moves.length);
  const loops = new Float64Array(3 * moves.length);
  return {
    length: moves.length,
    peer: Int32Array.from(moves, ({ peer }) => peer),
    stage: new Uint8Array(moves.length),
    tensor: new Int32Array(moves.length),
    sourceTensor: new Int32Array(moves.length),
    sourceOffset: zeros,
    destinationOffset: zeros,
    inner: Float64Array.from(moves, ({ inner }) => inner),
    counts: Float64Array.from(moves.flatMap(({ count = 1 }) => [1, 1, count])),
    sourceStrides: loops,
    destinationStrides: loops,
    transform: Uint16Array.from(moves, ({ transform = 0 }) => transform),
  };
}

it('lists what a rank sends and receives by peer, in bytes as they arrive', () => {
  const narrow = castTransform(dtypeCode('f32'), dtypeCode('bf16'));
  const traffic = [
    trafficOf(
      table([
        { peer: 0, inner: 10 },
        { peer: 1, inner: 8, count: 3 },
        { peer: 1, inner: 5, transform: narrow },
      ]),
    ),
    trafficOf(
      table([
        { peer: 0, inner: 7 },
        { peer: 0, inner: 0 },
      ]),
    ),
  ];
  expect(pathsOf(traffic, 0)).toEqual([
    { peer: 0, direction: 'send', path: 'local', bytes: 10, why: '' },
    { peer: 1, direction: 'send', path: 'mapped', bytes: 34, why: '' },
    { peer: 1, direction: 'receive', path: 'mapped', bytes: 7, why: '' },
  ]);
  expect(pathsOf(traffic, 1)).toEqual([
    { peer: 0, direction: 'send', path: 'mapped', bytes: 7, why: '' },
    { peer: 0, direction: 'receive', path: 'mapped', bytes: 34, why: '' },
  ]);
});

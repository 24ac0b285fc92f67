// SPDX-License-Identifier: Apache-2.0
// Public functions name what is of the wrong kind; no TypeError or RangeError comes from inside.

import { describe, expect, it } from 'vitest';
import { castArray } from '../dtype/cast-array.js';
import { dtypeBytes, isFloatDType } from '../dtype/dtype.js';
import { packF4, unpackF4 } from '../dtype/f4.js';
import { decodeFloat, encodeFloat } from '../dtype/float-bits.js';
import { fromFloat64, toFloat64 } from '../dtype/float64-values.js';
import { typedArrayFor } from '../dtype/typed-array.js';
import { layout } from '../layout/layout.js';
import { mesh } from '../mesh/device-mesh.js';
import { subscribe } from '../observe/channels.js';
import { openLogger } from '../observe/logger.js';
import { resolveOptions } from '../options/resolve-options.js';
import { presetTopology, singleDomain } from '../topology/presets.js';
import { topologyFor } from '../topology/topology-for.js';
import { init } from '../world/init.js';
import { readLauncher } from '../world/launcher.js';
import { localWorld } from '../world/local-world.js';
import { NcclExtError } from './nccl-ext-error.js';

const oddities: readonly unknown[] = [
  undefined,
  null,
  true,
  Number.NaN,
  -1,
  0.5,
  2 ** 60,
  1n,
  Symbol('s'),
  '',
  'x',
  [],
  [null],
  {},
  Object.create(null),
  () => 1,
];
const bytes = new Uint8Array(16);
const grid = mesh({ tp: 2 });
const even = layout({ shape: [4], dtype: 'f32', mesh: grid, placements: {} });

// Functions take `unknown` here, as JavaScript callers do.
const calls: Record<string, (value: never) => unknown> = {
  dtypeBytes,
  isFloatDType,
  typedArrayFor,
  'castArray from': (v) => castArray(v, bytes, 'f32', bytes),
  'castArray source': (v) => castArray('f32', v, 'f32', bytes),
  'castArray destination': (v) => castArray('f32', bytes, 'f32', v),
  'packF4 from': (v) => packF4(v, bytes, new Uint8Array(2)),
  'unpackF4 to': (v) => unpackF4(new Uint8Array(2), v, bytes),
  'unpackF4 source': (v) => unpackF4(v, 'f32', bytes),
  'encodeFloat dtype': (v) => encodeFloat(v, 1),
  'decodeFloat dtype': (v) => decodeFloat(v, 1 as never),
  'decodeFloat f64': (v) => decodeFloat('f64', v),
  'toFloat64 bytes': (v) => toFloat64('f32', v),
  'fromFloat64 dtype': (v) => fromFloat64(v, [1]),
  'mesh options': (v) => mesh({ a: 1 }, v),
  'rankAt coordinates': (v) => grid.rankAt(v),
  layout,
  'layout.toGlobal rank': (v) => even.toGlobal(v, [0]),
  'layout.holders index': (v) => even.holders(v),
  'presetTopology name': (v) => presetTopology(v, 2),
  'topologyFor ranks': (v) => topologyFor(singleDomain(1), v),
  'topology.subset': (v) => singleDomain(2).subset(v),
  'resolveOptions env': (v) => resolveOptions({}, v),
  'readLauncher env': (v) => readLauncher(v),
  'subscribe name': (v) => subscribe(v, () => {}),
  'subscribe listener': (v) => subscribe('world.created', v),
  'openLogger logger': (v) => openLogger('info', v),
  localWorld: (v) => localWorld(v),
  'localWorld signal': (v) => localWorld({ ranks: 1, signal: v, backend: 'embedded' }),
  'localWorld devices': (v) => localWorld({ ranks: 3, devices: v, backend: 'embedded' }),
  init: (v) => init(v),
};

describe.each(Object.entries(calls))('%s', (name, call) => {
  it('takes a value or throws an NcclExtError', async () => {
    for (const value of oddities) {
      try {
        const result = await call(value as never);
        // A world that a lenient value made must not outlive the test.
        if (typeof (result as { dispose?: unknown } | undefined)?.dispose === 'function')
          await (result as { dispose(): Promise<void> }).dispose();
        else if (typeof result === 'function' && name === 'subscribe listener') result();
      } catch (error) {
        expect(error).toSatisfy(NcclExtError.is);
      }
    }
  });
});

it('never reads numbers where bytes are meant', () => {
  const floats = new Float32Array(4) as never;
  for (const call of [
    () => castArray('f32', floats, 'f32', bytes),
    () => castArray('f32', bytes, 'f32', floats),
    () => fromFloat64('f32', 'text' as never),
    () => fromFloat64('f32', [null as never]),
    () => encodeFloat('bf16', '1' as never),
  ])
    expect(call).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT' }));
});

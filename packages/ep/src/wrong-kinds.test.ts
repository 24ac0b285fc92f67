// SPDX-License-Identifier: Apache-2.0
// Public functions name the argument that is of the wrong kind; no TypeError comes from inside.

import { NcclExtError } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import {
  allocateTensor,
  createEpGroup,
  dequantizeFp8,
  dequantizeMxfp8,
  type EpConfig,
  epMemory,
  expertMapOf,
  layoutOf,
  placeExperts,
  probeEp,
  routingBalance,
  topK,
  viewTensor,
} from './index.js';

const oddities: readonly unknown[] = [undefined, null, true, Number.NaN, 1n, 'x', [], [null], {}, () => 1];
const config: EpConfig = { experts: 4, topK: 2, hidden: 8, dtype: 'f32', maxTokensPerRank: 2 };
const rows = new Uint8Array(32);

const calls: Record<string, (value: never) => unknown> = {
  createEpGroup: (v) => createEpGroup(v, config),
  allocateTensor: (v) => allocateTensor(v, 'f32', [1]),
  viewTensor,
  layoutOf: (v) => layoutOf(v, 2),
  'layoutOf ranks': (v) => layoutOf(config, v),
  epMemory: (v) => epMemory(v, 2),
  'epMemory alignment': (v) => epMemory(config, 2, v),
  probeEp: (v) => probeEp(v, 2),
  'probeEp options': (v) => probeEp(config, 2, v),
  ...Object.fromEntries(
    Object.keys(config).map((name) => [name, (v: never) => layoutOf({ ...config, [name]: v }, 2)]),
  ),
  expertMapOf: (v) => expertMapOf(v, 2),
  'expertMapOf ranks': (v) => expertMapOf(4, v),
  topK,
  'topK scores': (v) => topK({ scores: v, experts: 2, k: 1 }),
  'topK experts': (v) => topK({ scores: [1, 2], experts: v, k: 1 }),
  'topK bias': (v) => topK({ scores: [1, 2], experts: 2, k: 1, bias: v }),
  'topK groups': (v) => topK({ scores: [1, 2], experts: 2, k: 1, groups: v }),
  routingBalance,
  'routingBalance topkIdx': (v) => routingBalance({ topkIdx: v, topK: 1, experts: 2 }),
  'routingBalance ids': (v) => routingBalance({ topkIdx: [v], topK: 1, experts: 2 }),
  'routingBalance experts': (v) => routingBalance({ topkIdx: [[0]], topK: 1, experts: v }),
  placeExperts,
  'placeExperts load': (v) => placeExperts({ load: v, ranks: 1, slotsPerRank: 2 }),
  dequantizeFp8: (v) => dequantizeFp8(v, new Float32Array(1), 32),
  'dequantizeFp8 rows': (v) => dequantizeFp8({ rows: v, hidden: 32 }, new Float32Array(1), 32),
  'dequantizeFp8 scales': (v) => dequantizeFp8({ rows, hidden: 32 }, v, 32),
  dequantizeMxfp8: (v) => dequantizeMxfp8({ rows, hidden: 32 }, v),
};

describe.each(Object.entries(calls))('%s', (_, call) => {
  it('takes a value or throws an NcclExtError', async () => {
    for (const value of oddities) {
      try {
        await call(value as never);
      } catch (error) {
        expect(error).toSatisfy(NcclExtError.is);
      }
    }
  });
});

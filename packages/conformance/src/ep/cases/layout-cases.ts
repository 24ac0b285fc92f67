// SPDX-License-Identifier: Apache-2.0
// Every layout: where rows lie, what is reported beside them, what nobody may write.

import { epCase, everyLayout, highThroughput, ragged, uniform } from './base.js';
import type { EpCase } from './ep-case.js';

const repeated = { ids: 'striped', tokens: 'full' } as const;

export const layoutCases: readonly EpCase[] = [
  ...everyLayout.flatMap((handle): EpCase[] => [
    epCase('ep-layouts', `${handle.layout}, 4 tokens of 8 experts`, {
      handles: [handle],
      routings: [uniform, ragged],
      config: { maxTokensPerRank: 4 },
    }),
    epCase('ep-layouts', `${handle.layout}, top-1`, { handles: [handle], config: { topK: 1 } }),
    epCase('ep-layouts', `${handle.layout}, equal rows of equal tokens`, {
      handles: [handle],
      routings: [repeated],
    }),
    epCase('ep-layouts', `${handle.layout}, required outputs only`, {
      handles: [handle],
      routings: [uniform, ragged],
      bare: true,
    }),
    epCase('ep-layouts', `${handle.layout}, counts and ids of 64 bits`, {
      handles: [handle],
      routings: [uniform, ragged],
      index: 'i64',
    }),
    epCase('ep-layouts', `${handle.layout}, rows that nobody writes are marked`, {
      handles: [handle],
      routings: [uniform, ragged],
      config: { debugFill: 0x5a },
      // Phantom rows and NaNs from memory that was never written.
      reports: ['deepseek-ai/DeepEP#589', 'deepseek-ai/DeepEP#600'],
    }),
  ]),
  ...[1, 2, 8, 64].map((alignment) =>
    epCase('ep-layouts', `packed, zones of ${alignment}`, {
      handles: [{ layout: 'packed', alignment }],
      routings: [uniform, ragged, { ids: 'one-rank' }],
      exactRows: true,
    }),
  ),
  epCase('ep-layouts', 'rows name their experts as they were routed', {
    handles: everyLayout.slice(1, 3),
    routings: [uniform, ragged],
    ids: 'global',
  }),
  epCase('ep-layouts', 'a smaller second batch leaves no rows of the first', {
    handles: everyLayout.slice(2),
    routings: [
      { ids: 'uniform' },
      { ids: 'uniform' },
      { ids: 'uniform', tokens: [1] },
      { ids: 'uniform', tokens: [0, 1] },
    ],
    steps: 4,
  }),
  epCase('ep-layouts', 'expanded at the sender', {
    config: { expand: 'sender' },
    routings: [{ ids: 'hot' }],
  }),
  epCase('ep-layouts', 'expanded at the receiver', {
    config: { expand: 'receiver' },
    routings: [{ ids: 'hot' }],
  }),
  epCase('ep-layouts', 'one group, low latency and high throughput in turn', {
    routings: [uniform, ragged],
    steps: 12,
    reports: ['uccl-project/uccl#1023', 'NVIDIA/TensorRT-LLM#15597', 'sgl-project/sglang#38888'],
  }),
  epCase('ep-layouts', 'rows in order of source and token, the same every time', {
    routings: [{ ids: 'hot' }],
    steps: 12,
    reports: ['deepseek-ai/DeepEP#753', 'deepseek-ai/DeepEP#689'],
  }),
  epCase('ep-layouts', 'buffers as long as counts() says', {
    handles: highThroughput,
    routings: [uniform, ragged, { ids: 'none' }],
    exactRows: true,
    backward: true,
    steps: 6,
    reports: ['NVIDIA/nccl#2123', 'NVIDIA/nccl#2164', 'NVIDIA/nccl#2252'],
  }),
];

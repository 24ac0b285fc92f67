// SPDX-License-Identifier: Apache-2.0
// The same steps executed otherwise: several in flight, on several streams, sent and completed apart, recorded in graphs.

import { epCase, everyLayout, highThroughput, lowLatency, ragged, uniform } from './base.js';
import type { EpCase, HandleSpec } from './ep-case.js';

/** Handles of all layouts, several times. */
const many: readonly HandleSpec[] = [...everyLayout, ...everyLayout.toReversed(), ...everyLayout];
const fixed = [uniform, { ids: 'hot' as const }, { ids: 'uniform' as const, holes: 50 }];

export const executionCases: readonly EpCase[] = [
  epCase('ep-order', 'two handles of low latency in turn', {
    handles: [lowLatency[0]!, lowLatency[0]!],
    routings: [uniform],
    steps: 16,
    pipelined: true,
    reports: ['NVIDIA/nccl#2303', 'NVIDIA/nccl-extensions#6'],
  }),
  epCase('ep-order', 'twelve handles of all layouts, 36 steps without a wait', {
    handles: many,
    routings: [uniform, ragged, { ids: 'hot' }],
    steps: 36,
    pipelined: true,
    reports: ['NVIDIA/nccl#2303'],
  }),
  ...[1, 2, 7, 64].map((contexts) =>
    epCase('ep-order', `${contexts} context${contexts === 1 ? '' : 's'}`, {
      handles: [...everyLayout, ...everyLayout],
      routings: [uniform, ragged],
      steps: 16,
      pipelined: true,
      config: { contexts },
    }),
  ),
  epCase('ep-order', 'steps on four streams', {
    handles: [...everyLayout, ...everyLayout],
    routings: [uniform, ragged],
    steps: 8,
    streams: 4,
    pipelined: true,
    reports: ['deepseek-ai/DeepEP#589'],
  }),
  epCase('ep-order', 'handles of high throughput on three streams', {
    handles: [...highThroughput, ...highThroughput, ...highThroughput],
    routings: [uniform, ragged],
    steps: 6,
    streams: 3,
    pipelined: true,
    backward: true,
  }),
  epCase('ep-order', 'sends that are completed later', {
    handles: lowLatency,
    routings: [uniform, ragged],
    steps: 8,
    sendOnly: true,
  }),
  epCase('ep-order', 'sends of two handles without a wait', {
    handles: [...lowLatency, ...lowLatency],
    routings: [uniform, ragged],
    steps: 12,
    sendOnly: true,
    pipelined: true,
  }),
  epCase('ep-graphs', 'each layout, replayed with other values', {
    routings: fixed,
    steps: 16,
    capture: true,
    reports: ['sgl-project/sglang#5014', 'alibaba/rtp-llm#1308', 'deepseek-ai/DeepEP#505'],
  }),
  epCase('ep-graphs', 'sends and completes in a graph', {
    handles: lowLatency,
    routings: fixed,
    steps: 6,
    capture: true,
    sendOnly: true,
  }),
  epCase('ep-graphs', 'forward and backward in a graph', {
    handles: highThroughput,
    routings: fixed,
    steps: 6,
    capture: true,
    backward: true,
  }),
  epCase('ep-graphs', 'drops in a graph', {
    handles: highThroughput,
    routings: fixed,
    steps: 6,
    capture: true,
    config: { receiveBudget: 9, overflow: 'drop-by-weight' },
  }),
  epCase('ep-graphs', 'quantised rows in a graph', {
    routings: fixed,
    steps: 8,
    capture: true,
    quantization: 'mxfp8',
    config: { hidden: 64 },
  }),
];

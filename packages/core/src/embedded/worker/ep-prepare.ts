// SPDX-License-Identifier: Apache-2.0
// What a rank does before it enters an operation: it looks at its own side, and writes what peers will read.

import { epLayouts, epPasses } from '../../contract/index.js';
import { errorNumbers } from '../../errors/codes.js';
import { callKinds, callWord, contextWord, descriptorWord, handleStates, stateWord } from '../ep/ep-words.js';
import { floatsAt, intsAt } from './ep-group.js';
import { takeSnapshot } from './ep-snapshot.js';
import { condemn, countsOf, type Ep, getState } from './ep-state.js';

/** Why a call cannot follow what the handle did before; the first detail of ERR_INVALID_STATE. */
export const stateFaults = [
  '',
  'nothing has been routed since the handle was made, failed to route, or the members changed',
  'another number of tokens was routed last',
  'nothing has been dispatched since the last route',
] as const;

/** Leaves this rank's first verdict in the call. */
export function prepare(ep: Ep): void {
  const { call } = ep;
  const kind = callKinds[call[callWord.kind]!]!;
  if (kind === 'route') {
    takeSnapshot(ep);
    return;
  }
  const fault = stateFault(ep, kind === 'combine');
  if (fault !== undefined) condemn(ep, ...fault);
  else if (kind === 'dispatch' && epPasses[call[callWord.pass]!] === 'forward') storeWeights(ep);
}

type Fault = readonly [code: number, a: number, b?: number, c?: number];

function stateFault(ep: Ep, combines: boolean): Fault | undefined {
  const { call } = ep;
  const counts = countsOf(ep);
  const state = handleStates[getState(counts, 'state')];
  if (getState(counts, 'epoch') !== ep.epoch) return [errorNumbers.ERR_INVALID_STATE, 1];
  const lowLatency = isLowLatency(ep);
  if (state === 'refused' && lowLatency)
    return [
      errorNumbers.ERR_ROUTING,
      getState(counts, 'token'),
      getState(counts, 'position'),
      getState(counts, 'id'),
    ];
  if (state === 'none' || state === 'refused') return [errorNumbers.ERR_INVALID_STATE, 1];
  if (getState(counts, 'tokens') !== call[callWord.tokens]) return [errorNumbers.ERR_INVALID_STATE, 2];
  if (state === 'planned') return undefined;
  return lowLatency && !combines ? undefined : [errorNumbers.ERR_INVALID_STATE, combines ? 3 : 1];
}

export function isLowLatency({ call }: Ep): boolean {
  const layout = epLayouts[call[callWord.layout]!];
  return layout === 'expert-major' || layout === 'rank-major';
}

/** Keeps the weights that are sent, [B, K]: w, or w / (sum of the token's live w in top-k order, each step rounded to f32). */
function storeWeights({ call, group, spaces }: Ep): void {
  const { topK } = group;
  const length = call[callWord.tokens]! * topK;
  if (length === 0) return;
  const given = floatsAt(spaces, call[callWord.topkWeights]!, length);
  const kept = floatsAt(spaces, call[callWord.weights]!, length);
  if (call[callWord.renormalize] === 0) {
    kept.set(given);
    return;
  }
  const experts = intsAt(spaces, call[callWord.experts]!, length);
  for (let first = 0; first < length; first += topK) {
    let sum: number | undefined;
    for (let at = first; at < first + topK; at++) {
      if (experts[at]! < 0) continue;
      sum = sum === undefined ? given[at]! : Math.fround(sum + given[at]!);
    }
    for (let at = first; at < first + topK; at++) kept[at] = experts[at]! < 0 ? 0 : given[at]! / sum!;
  }
}

/** Writes the descriptor that peers compare and move by. */
export function describeEntry(ep: Ep): void {
  const { call, context, group } = ep;
  const at = context + contextWord.descriptor;
  const { f64 } = group.space;
  const counts = countsOf(ep);
  const kind = callKinds[call[callWord.kind]!]!;
  f64[at + descriptorWord.kind] = call[callWord.kind]!;
  f64[at + descriptorWord.handle] = call[callWord.handle]! + call[callWord.falsified]! * 2 ** 20;
  f64[at + descriptorWord.layout] = call[callWord.layout]!;
  f64[at + descriptorWord.pass] = call[callWord.pass]!;
  f64[at + descriptorWord.quantization] = call[callWord.quantization]!;
  f64[at + descriptorWord.rowBytes] = call[callWord.rowBytes]!;
  f64[at + descriptorWord.scaleBytes] = call[callWord.scaleBytes]!;
  f64[at + descriptorWord.tokens] = call[callWord.tokens]!;
  f64[at + descriptorWord.experts] = call[callWord.experts]!;
  f64[at + descriptorWord.weights] = call[callWord.weights]!;
  f64[at + descriptorWord.slots] = call[callWord.slots]!;
  f64[at + descriptorWord.tokensAddress] = call[callWord.tokensAddress]!;
  f64[at + descriptorWord.scalesAddress] = call[callWord.scalesAddress]!;
  f64[at + descriptorWord.gradientsAddress] = kind === 'combine' ? call[callWord.topkWeights]! : 0;
  f64[at + descriptorWord.rows] = call[callWord.rows]!;
  f64[at + descriptorWord.code] = call[callWord.code]!;
  if (call[callWord.code] !== 0) return;
  if (kind === 'route' || isLowLatency(ep)) return;
  checkRows(ep, counts.words[(2 * counts.experts + counts.ranks + stateWord.rows) * 2]!);
  f64[at + descriptorWord.code] = call[callWord.code]!;
}

/** The caller's buffer must hold the rows that were planned. */
function checkRows(ep: Ep, rows: number): void {
  const room = ep.call[callWord.rows]!;
  if (room < rows) condemn(ep, errorNumbers.ERR_OVERFLOW, rows, room);
}

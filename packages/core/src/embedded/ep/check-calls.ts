// SPDX-License-Identifier: Apache-2.0
// Writes the words of each kind of call, and checks everything that one rank can know when it enqueues.

import {
  absentRange,
  type EpCombineCall,
  type EpDispatchCall,
  type EpLayout,
  type EpRouteCall,
  epPasses,
  epQuantizations,
} from '../../contract/index.js';
import type { CallRanges } from './call-ranges.js';
import type { EpHandleState } from './ep-objects.js';
import { callWord } from './ep-words.js';
import { localExperts } from './open-handle.js';

const maxRows = 2 ** 31 - 1;

export function isLowLatency(layout: EpLayout): boolean {
  return layout === 'expert-major' || layout === 'rank-major';
}

export function checkRoute(handle: EpHandleState, call: EpRouteCall, ranges: CallRanges): void {
  const { group } = handle;
  const { topK, maxTokensPerRank, overflow, receiveBudget } = group.config;
  const { ranks } = group.owner.world.options;
  const { tokens } = call;
  if (!Number.isSafeInteger(tokens) || tokens < 0 || tokens > maxTokensPerRank) {
    ranges.refuse(`tokens is ${tokens}; it must be an integer from 0 to ${maxTokensPerRank}`);
    return;
  }
  ranges.words[callWord.tokens] = tokens;
  ranges.counter('topkIdx', callWord.topkIdx, call.topkIdx, tokens * topK, true);
  const weighs = !isLowLatency(handle.config.layout) && receiveBudget > 0 && overflow === 'drop-by-weight';
  ranges.range('topkWeights', callWord.topkWeights, call.topkWeights, tokens * topK * 4, weighs, 4);
  ranges.counter('expertCounts', callWord.expertCounts, call.expertCounts, localExperts(group));
  ranges.counter('expertOffsets', callWord.expertOffsets, call.expertOffsets, localExperts(group));
  ranges.counter('sourceCounts', callWord.sourceCounts, call.sourceCounts, ranks);
  ranges.counter('total', callWord.total, call.total, 1);
  ranges.counter('demand', callWord.demand, call.demand, 1);
}

export function checkDispatch(handle: EpHandleState, call: EpDispatchCall, ranges: CallRanges): void {
  const { group, config } = handle;
  const { topK, maxTokensPerRank } = group.config;
  const { ranks } = group.owner.world.options;
  const { tokens } = handle.progress;
  const lowLatency = isLowLatency(config.layout);
  const forward = call.pass === 'forward';
  if (!checkPass(handle, call.pass, ranges) || !checkDispatchBytes(handle, call, ranges)) return;
  const rows = fixedRows(handle) ?? call.outRows;
  if (!checkRowCount(handle, 'outRows', call.outRows, rows, ranges)) return;
  if (call.sendOnly && !lowLatency)
    ranges.refuse(`sendOnly needs a low-latency layout, not ${config.layout}`);
  const { words } = ranges;
  words[callWord.pass] = epPasses.indexOf(call.pass);
  words[callWord.quantization] = epQuantizations.indexOf(call.quantization);
  words[callWord.tokens] = tokens;
  words[callWord.rowBytes] = call.rowBytes;
  words[callWord.outRowBytes] = call.outRowBytes;
  words[callWord.scaleBytes] = call.scaleBytes;
  words[callWord.rows] = rows;
  words[callWord.idsLocal] = call.idsLocal ? 1 : 0;
  words[callWord.renormalize] = call.renormalize ? 1 : 0;
  words[callWord.sendOnly] = call.sendOnly ? 1 : 0;
  const perRow = config.layout === 'packed' ? 1 : topK;
  const scalesIn = call.quantization === 'forward' ? call.scaleBytes : 0;
  ranges.range('tokens', callWord.tokensAddress, call.tokens, tokens * call.rowBytes, true);
  ranges.range(
    'topkWeights',
    callWord.topkWeights,
    forward ? call.topkWeights : absentRange,
    tokens * topK * 4,
    forward,
    4,
  );
  ranges.range('scales', callWord.scalesAddress, call.scales, tokens * scalesIn, scalesIn > 0, 1);
  ranges.range('outTokens', callWord.outTokens, call.outTokens, rows * call.outRowBytes, true);
  const f32Scales = call.quantization === 'fp8' || call.quantization === 'fp8-pow2';
  ranges.range(
    'outScales',
    callWord.outScales,
    call.outScales,
    rows * call.scaleBytes,
    true,
    f32Scales ? 4 : 1,
  );
  ranges.range('outWeights', callWord.outWeights, call.outWeights, rows * perRow * 4, false, 4);
  ranges.counter('outTopkIdx', callWord.outTopkIdx, call.outTopkIdx, rows * topK);
  ranges.counter('expertCounts', callWord.expertCounts, call.expertCounts, localExperts(group));
  ranges.counter('sourceCounts', callWord.sourceCounts, call.sourceCounts, ranks);
  ranges.apart(
    'outTokens',
    callWord.outTokens,
    rows * call.outRowBytes,
    'tokens',
    callWord.tokensAddress,
    tokens * call.rowBytes,
  );
  if (!forward && (call.outWeights.buffer !== 0 || call.outTopkIdx.buffer !== 0))
    ranges.refuse('outWeights and outTopkIdx belong to a forward pass');
  if (config.layout === 'expert-major' && (call.outWeights.buffer !== 0 || call.outTopkIdx.buffer !== 0))
    ranges.refuse('outWeights and outTopkIdx do not exist in expert-major');
  if (config.layout === 'packed' && call.outTopkIdx.buffer !== 0)
    ranges.refuse('outTopkIdx does not exist in packed, whose zones say the expert');
  if (tokens > maxTokensPerRank) ranges.refuse(`${tokens} tokens were routed; at most ${maxTokensPerRank}`);
}

export function checkCombine(handle: EpHandleState, call: EpCombineCall, ranges: CallRanges): void {
  const { group, config } = handle;
  const { topK, hidden, reduction } = group.config;
  const { tokens } = handle.progress;
  const backward = call.pass === 'backward';
  const rowBytes = hidden * elementBytesOf(handle);
  if (!checkPass(handle, call.pass, ranges)) return;
  if (call.quantization !== 'none' && call.quantization !== 'fp8')
    ranges.refuse(`quantization ${call.quantization} does not exist in combine; pass none or fp8`);
  if (call.quantization === 'fp8' && hidden % 128 !== 0)
    ranges.refuse(`quantization fp8 needs a hidden size that is a multiple of 128, not ${hidden}`);
  if (reduction === 'token' && (config.layout === 'rank-major' || config.layout === 'flat'))
    ranges.refuse(`reduction token needs rows per expert; ${config.layout} rows are summed by the caller`);
  if (reduction === 'token' && call.quantization === 'fp8')
    ranges.refuse('reduction token rounds once, so its payloads cannot pass as fp8');
  if (call.sendOnly && !isLowLatency(config.layout))
    ranges.refuse(`sendOnly needs a low-latency layout, not ${config.layout}`);
  const rows = fixedRows(handle) ?? call.rows;
  if (!checkRowCount(handle, 'rows', call.rows, rows, ranges)) return;
  const { words } = ranges;
  words[callWord.pass] = epPasses.indexOf(call.pass);
  words[callWord.quantization] = epQuantizations.indexOf(call.quantization);
  words[callWord.tokens] = tokens;
  words[callWord.rowBytes] = rowBytes;
  words[callWord.rows] = rows;
  words[callWord.sendOnly] = call.sendOnly ? 1 : 0;
  const perRow = config.layout === 'packed' ? 1 : topK;
  ranges.range('tokens', callWord.tokensAddress, call.tokens, rows * rowBytes, true);
  ranges.range(
    'topkWeights',
    callWord.topkWeights,
    backward ? call.topkWeights : absentRange,
    rows * perRow * 4,
    backward,
    4,
  );
  ranges.range('outTokens', callWord.outTokens, call.outTokens, tokens * rowBytes, true);
  ranges.range(
    'outWeights',
    callWord.outWeights,
    backward ? call.outWeights : absentRange,
    tokens * topK * 4,
    backward,
    4,
  );
  ranges.apart(
    'outTokens',
    callWord.outTokens,
    tokens * rowBytes,
    'tokens',
    callWord.tokensAddress,
    rows * rowBytes,
  );
}

function elementBytesOf({ group }: EpHandleState): number {
  return group.config.dtype === 1 ? 4 : 2;
}

/** Rows of the layouts whose size does not depend on the routing. */
function fixedRows({ group, config }: EpHandleState): number | undefined {
  const { maxTokensPerRank } = group.config;
  const { ranks } = group.owner.world.options;
  if (config.layout === 'expert-major') return localExperts(group) * ranks * maxTokensPerRank;
  return config.layout === 'rank-major' ? ranks * maxTokensPerRank : undefined;
}

function checkPass({ config }: EpHandleState, pass: string, ranges: CallRanges): boolean {
  if (pass === 'forward' || (pass === 'backward' && !isLowLatency(config.layout))) return true;
  ranges.refuse(`there is no ${pass} pass in ${config.layout}; backward needs flat or packed`);
  return false;
}

function checkRowCount(
  handle: EpHandleState,
  name: string,
  given: number,
  rows: number,
  ranges: CallRanges,
): boolean {
  const { receiveBudget } = handle.group.config;
  if (!Number.isSafeInteger(given) || given < 0 || given > maxRows)
    ranges.refuse(`${name} is ${given}; it must be an integer from 0 to ${maxRows}`);
  else if (given < rows) ranges.refuse(`${name} is ${given}; the layout has ${rows} rows`);
  else if (fixedRows(handle) === undefined && given < receiveBudget)
    ranges.refuse(`${name} is ${given}; it must be at least the receive budget of ${receiveBudget}`);
  return ranges.error === undefined;
}

function checkDispatchBytes(handle: EpHandleState, call: EpDispatchCall, ranges: CallRanges): boolean {
  const { hidden } = handle.group.config;
  const rowBytes = hidden * elementBytesOf(handle);
  const expected = {
    none: [rowBytes, rowBytes, 0],
    forward: [call.rowBytes, call.rowBytes, call.scaleBytes],
    fp8: [rowBytes, hidden, (hidden / 128) * 4],
    'fp8-pow2': [rowBytes, hidden, (hidden / 128) * 4],
    mxfp8: [rowBytes, hidden, hidden / 32],
  }[call.quantization];
  if (expected === undefined) {
    ranges.refuse(`${String(call.quantization)} is no quantization`);
    return false;
  }
  const block = call.quantization === 'mxfp8' ? 32 : call.quantization.startsWith('fp8') ? 128 : 1;
  if (hidden % block !== 0)
    ranges.refuse(
      `quantization ${call.quantization} needs a hidden size that is a multiple of ${block}, not ${hidden}`,
    );
  if (call.pass === 'backward' && call.quantization !== 'none' && call.quantization !== 'forward')
    ranges.refuse(`quantization ${call.quantization} does not exist in a backward pass`);
  const given = [call.rowBytes, call.outRowBytes, call.scaleBytes];
  if (given.some((value, i) => value !== expected[i] || !Number.isSafeInteger(value) || value < 0))
    ranges.refuse(
      `rowBytes, outRowBytes and scaleBytes are ${given.join(', ')}; ${call.quantization} needs ${expected.join(', ')}`,
    );
  else if (call.rowBytes === 0 || call.rowBytes % 16 !== 0 || call.outRowBytes % 16 !== 0)
    ranges.refuse(`rows of ${call.rowBytes} bytes; rows must be multiples of 16 bytes`);
  return ranges.error === undefined;
}

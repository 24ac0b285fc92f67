// SPDX-License-Identifier: Apache-2.0
// One step as the oracle sees it: what every rank brings, and what every rank receives.

import { dtypeBytes } from '@nccl-ext/core';
import type { EpCase, HandleSpec } from '../cases/ep-case.js';
import { type RankInputs, receivedOf, type StepRules } from '../oracle/expected-step.js';
import type { Received } from '../oracle/received.js';
import type { Routing } from '../oracle/routing.js';
import { drawRoutings } from './draw-routing.js';
import { expertCountOf, placementOf, rowFormatOf, rulesOf } from './group-facts.js';
import { drawElements, wordsOf } from './step-data.js';

export interface StepPlan {
  readonly epoch: number;
  readonly rules: StepRules;
  readonly inputs: readonly RankInputs[];
  readonly received: readonly Received[];
  /** Rows of the output buffer of each rank. */
  readonly outRows: readonly number[];
}

export interface PlanOptions {
  readonly members?: readonly number[];
  /** Buffers hold whatever a step of this group can bring. */
  readonly worstCase?: boolean;
}

export function planStep(
  epCase: EpCase,
  handle: HandleSpec,
  epoch: number,
  options: PlanOptions = {},
): StepPlan {
  const { config, routings: specs } = epCase;
  const rules = rulesOf(epCase, handle, options.members);
  const routings = drawRoutings(
    specs[epoch % specs.length]!,
    {
      placement: placementOf(epCase),
      count: expertCountOf(config),
      topK: config.topK,
      maxTokens: config.maxTokensPerRank,
    },
    epoch,
  );
  const received = receivedOf(rules, routings);
  const outRows = received.map((one) => rowsOfBuffer(epCase, handle, one, options.worstCase === true));
  const inputs = routings.map((routing, rank) =>
    drawInputs(epCase, handle, epoch, rank, routing, outRows[rank]!, received[rank]!),
  );
  return { epoch, rules, inputs, received, outRows };
}

/** Rows beyond those that come, so that what nobody may write shows. */
const spareRows = 3;

function rowsOfBuffer(
  { config, ranks, exactRows = false }: EpCase,
  { layout, alignment = 1 }: HandleSpec,
  { total, perExpert }: Received,
  worstCase: boolean,
): number {
  const { maxTokensPerRank, topK, receiveBudget = 'eager' } = config;
  const localExperts = perExpert.length;
  const tokens = ranks * maxTokensPerRank;
  if (layout === 'expert-major') return localExperts * tokens;
  if (layout === 'rank-major') return tokens;
  if (receiveBudget !== 'eager') return receiveBudget;
  if (exactRows) return total;
  if (!worstCase) return total + spareRows;
  return layout === 'flat' ? tokens : tokens * topK + localExperts * alignment;
}

function drawInputs(
  epCase: EpCase,
  { layout }: HandleSpec,
  epoch: number,
  rank: number,
  routing: Routing,
  outRows: number,
  received: Received,
): RankInputs {
  const { config, values = 'usual', quantization = 'none' } = epCase;

  const { hidden, dtype, topK, maxTokensPerRank } = config;
  const format = rowFormatOf(epCase);
  const { tokens } = routing;
  // What is only copied may be anything.
  const tokenKind =
    quantization === 'forward' || (quantization === 'none' && epCase.values === undefined) ? 'bits' : values;
  const first = rank * maxTokensPerRank;
  const rowsOf = (name: 'rows' | 'gradientRows'): Uint8Array => {
    // Rows that nobody received are NaNs: whoever reads them shows it.
    const bytes = new Uint8Array(outRows * hidden * dtypeBytes(dtype)).fill(0xff);
    const rowBytes = hidden * dtypeBytes(dtype);
    const words = wordsOf(name, epoch);
    for (const { row } of received.rows) {
      // With the policy that refuses, more may come than there is room for.
      if (row >= outRows) break;
      const at = (rank * 2 ** 20 + row) * hidden;
      bytes.set(drawElements(words, dtype, values, at, hidden), row * rowBytes);
    }
    return bytes;
  };
  const backward = epCase.backward === true;
  const perRow = layout === 'packed' ? 1 : topK;
  return {
    routing,
    tokens: drawElements(
      wordsOf('tokens', epoch),
      format.tokens,
      tokenKind,
      first * format.extent,
      tokens * format.extent,
    ),
    scales:
      quantization === 'forward' && format.scale !== undefined
        ? drawElements(
            wordsOf('scales', epoch),
            format.scale,
            'bits',
            first * format.scalesPerRow,
            tokens * format.scalesPerRow,
          )
        : new Uint8Array(0),
    rows: rowsOf('rows'),
    gradients: backward
      ? drawElements(wordsOf('gradients', epoch), dtype, 'bits', first * hidden, tokens * hidden)
      : new Uint8Array(0),
    gradientRows: backward ? rowsOf('gradientRows') : new Uint8Array(0),
    gradientWeights: backward
      ? new Float32Array(
          drawElements(wordsOf('gradientWeights', epoch), 'f32', 'usual', rank * 2 ** 20, outRows * perRow)
            .buffer as ArrayBuffer,
        )
      : new Float32Array(0),
  };
}

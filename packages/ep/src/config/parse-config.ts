// SPDX-License-Identifier: Apache-2.0
// The border: what a caller passes as a configuration becomes settings, or an error that names the field.

import { dtypeBytes, NcclExtError } from '@nccl-ext/core';
import {
  epExpansions,
  epOverflowPolicies,
  epReductions,
  epReplicaRules,
  maxTopK,
} from '@nccl-ext/core/contract';
import { requireObject } from '@nccl-ext/core/extend';
import { z } from 'zod';
import type { EpConfig } from './ep-config.js';
import type { EpSettings } from './ep-settings.js';
import { expertMapOf } from './expert-map.js';
import { requireFeasible } from './require-feasible.js';

const count = z.int().positive();

const schema = z.strictObject({
  experts: z.union([
    count,
    z.strictObject({
      count,
      placement: z.array(z.array(z.int().nonnegative())),
      replicaRule: z.enum(epReplicaRules).optional(),
    }),
  ]),
  topK: z.int().min(1).max(maxTopK),
  hidden: count,
  dtype: z.enum(['f32', 'f16', 'bf16']),
  maxTokensPerRank: count,
  receiveBudget: z.union([z.literal('eager'), count]).default('eager'),
  overflow: z.enum(epOverflowPolicies).default('error'),
  reduction: z.enum(epReductions).default('rank'),
  expand: z.enum(epExpansions).default('auto'),
  sms: count.default(0),
  contexts: z.int().min(1).max(64).default(4),
  timeoutMs: z.int().positive().max(0x7fff_ffff).optional(),
  mask: z.boolean().default(false),
  debugFill: z.union([z.literal(false), z.int().min(0).max(255)]).default(false),
});

/** The settings of `config` for `ranks` ranks; `timeoutMs` is used where the configuration names none. */
export function parseConfig(config: EpConfig, ranks: number, timeoutMs = 30_000): EpSettings {
  requireObject('config', config);
  if (!Number.isSafeInteger(ranks) || ranks < 1) throw invalid('ranks', 'must be a positive integer', ranks);
  const { memory: _, ...plain } = config;
  const result = schema.safeParse(plain);
  if (!result.success) {
    throw new NcclExtError('ERR_INVALID_ARGUMENT', `config is malformed:\n${z.prettifyError(result.error)}`, {
      field: result.error.issues[0]?.path.join('.') || 'config',
    });
  }
  const { experts, receiveBudget, debugFill, ...rest } = result.data;
  const settings: EpSettings = {
    ...rest,
    map: expertMapOf(experts, ranks),
    ranks,
    receiveBudget: receiveBudget === 'eager' ? 0 : receiveBudget,
    timeoutMs: rest.timeoutMs ?? timeoutMs,
    debugFill: debugFill === false ? -1 : debugFill,
  };
  requireConsistent(settings);
  requireFeasible(settings);
  return settings;
}

function requireConsistent(settings: EpSettings): void {
  const { map, topK, hidden, dtype, overflow, receiveBudget } = settings;
  if (topK > map.experts)
    throw invalid('topK', `must be at most the number of experts, ${map.experts}`, topK);
  const rowBytes = hidden * dtypeBytes(dtype);
  if (rowBytes % 16 !== 0) {
    throw invalid(
      'hidden',
      `must make rows of a multiple of 16 bytes (a multiple of ${16 / dtypeBytes(dtype)} for ${dtype})`,
      hidden,
    );
  }
  if (overflow !== 'error' && receiveBudget === 0)
    throw invalid(
      'overflow',
      'must be error while receiveBudget is eager; drops need a fixed budget',
      overflow,
    );
}

function invalid(field: string, rule: string, seen: unknown): NcclExtError {
  return new NcclExtError('ERR_INVALID_ARGUMENT', `${field} ${rule}, not ${String(seen)}.`, { field, seen });
}

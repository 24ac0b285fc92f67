// SPDX-License-Identifier: Apache-2.0
// Runs one case, whatever it is, and never throws: a case that breaks or hangs is a failed one.

import { NcclExtError } from '@nccl-ext/core';
import { backendOf } from '@nccl-ext/core/extend';
import type { ConformanceCase } from '../cases/case.js';
import { groups } from '../cases/groups.js';
import { runEpCase } from '../ep/run/run-ep-case.js';
import type { CaseResult } from './case-result.js';
import type { CaseWorld } from './case-world.js';
import { CheckContext } from './check-context.js';
import { MoveSession } from './move-session.js';
import type { ProcessGroup } from './process-group.js';
import { requireMemory } from './require-memory.js';
import { runMoveCase } from './run-move-case.js';
import { Skipped } from './skipped.js';
import type { WorldPool } from './world-pool.js';

const usualLimitMs = 120_000;
const longLimitMs = 3_600_000;

/** What {@link runCase} takes beside the case. */
export interface RunCaseOptions {
  /** Milliseconds until the case counts as hung; default two minutes, less among several processes, an hour for `large` and `soak`. */
  readonly limitMs?: number;
  /** Whose worlds the pool has. */
  readonly processes?: ProcessGroup;
  /** What reshards pass to `prepareTransfer`; with 0, those that copy engines cannot do alone are skipped. */
  readonly sms?: number | undefined;
}

/**
 * Runs a case on worlds of the pool.
 *
 * @example
 * ```ts
 * const pool = new WorldPool();
 * const result = await runCase(pool, selectCases({ group: 'graphs' })[0]);
 * result.status; // 'passed'
 * ```
 */
export async function runCase(
  pool: WorldPool,
  conformanceCase: ConformanceCase,
  options: RunCaseOptions = {},
): Promise<CaseResult> {
  const { name, group, ranks } = conformanceCase;
  const { processes, sms, limitMs = limitOf(conformanceCase, processes) } = options;
  const how = { limitMs, spread: processes !== undefined, sms };
  const began = performance.now();
  const { hung = false, ...outcome } = await attempt(pool, conformanceCase, how);
  const own: CaseResult = { name, group, ...outcome, ms: performance.now() - began };
  const result = processes === undefined ? own : await processes.combine(own, ranks);
  // What a wrong move has done to the world is unknown, and disposing one that hangs would hang too.
  if (hung) pool.forget(ranks);
  else if (result.status === 'failed') await pool.discard(ranks).catch(() => {});
  return result;
}

/** What came of a case in this process. */
interface Attempt {
  readonly status: CaseResult['status'];
  readonly detail: string;
  readonly hung?: boolean;
}

async function attempt(
  pool: WorldPool,
  conformanceCase: ConformanceCase,
  { limitMs, spread, sms }: { limitMs: number; spread: boolean; sms: number | undefined },
): Promise<Attempt> {
  try {
    if (spread) requireSpread(conformanceCase);
    const problem = await within(limitMs, execute(pool, conformanceCase, sms));
    return problem === undefined ? { status: 'passed', detail: '' } : { status: 'failed', detail: problem };
  } catch (error) {
    if (error instanceof Skipped) return { status: 'skipped', detail: error.message };
    return { status: 'failed', detail: describe(error), hung: error instanceof Hung };
  }
}

class Hung extends Error {}

function limitOf({ group }: ConformanceCase, processes: ProcessGroup | undefined): number {
  if (!groups[group].always) return longLimitMs;
  return processes?.caseLimitMs ?? usualLimitMs;
}

/** Skips what one process must drive alone. */
function requireSpread(conformanceCase: ConformanceCase): void {
  const { kind, group, ranks } = conformanceCase;
  // What each of them finds free decides whether a large case runs.
  if ((kind === 'move' && group !== 'large') || ranks === 1) return;
  if (kind === 'check' && conformanceCase.spread === true) return;
  throw new Skipped('needs all its ranks in one process');
}

async function execute(
  pool: WorldPool,
  conformanceCase: ConformanceCase,
  sms: number | undefined,
): Promise<string | undefined> {
  if (conformanceCase.needsEp) requireEp(await pool.shared(conformanceCase.ranks));
  if (conformanceCase.kind === 'move') {
    const { group, tensors, ranks } = conformanceCase;
    if (group === 'large') await requireMemory(pool, ranks, MoveSession.bytesOf(tensors, ranks));
    return runMoveCase(await pool.shared(conformanceCase.ranks), conformanceCase, sms);
  }
  if (conformanceCase.kind === 'ep')
    return runEpCase(await pool.shared(conformanceCase.ranks), conformanceCase);
  const context = new CheckContext(pool);
  try {
    await conformanceCase.run(context);
    return undefined;
  } finally {
    await context.dispose();
  }
}

/** Skips cases of expert parallelism on a backend without it. */
function requireEp(world: CaseWorld): void {
  const { ep, info } = backendOf(world.ranks[0]!);
  if (ep === undefined) throw new Skipped(`the ${info.name} backend has no expert parallelism`);
}

async function within<T>(milliseconds: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Hung(`did not end within ${milliseconds / 1000} s`)), milliseconds);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}

function describe(error: unknown): string {
  if (NcclExtError.is(error)) return `${error.code}: ${error.message}`;
  return error instanceof Error ? error.message : String(error);
}

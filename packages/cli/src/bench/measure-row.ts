// SPDX-License-Identifier: Apache-2.0
// Times a reshard on all ranks of a world, in turns with plain copies.

import type { BenchWorld } from './bench-world.js';
import type { Ceiling } from './ceiling.js';
import type { BenchRow } from './m2n-rows.js';
import { median, repeatTimed } from './samples.js';
import { timeAll } from './time-all.js';
import { type TransferOptions, type TransferRank, withTransfer } from './with-transfer.js';

/** A time per execution, in milliseconds, and what one execution does. */
export interface RowTime {
  readonly ms: number;
  /** Bytes that one execution writes. */
  readonly bytes: number;
  /** The copy that takes as long at best: on one GPU (or host) the one that causes as much traffic, between GPUs that of the busiest link. */
  readonly copyBytes: number;
  readonly samples: number;
}

/** A {@link RowTime} and the time of a plain copy, measured in turns with it. */
export interface PairedTime extends RowTime {
  /** Milliseconds in which plain copies move `ceilingBytes`. */
  readonly ceilingMs: number;
  readonly ceilingBytes: number;
}

/** `ms` is that of one of `executions` back to back, as a sample has them. */
export interface M2nTime extends PairedTime {
  readonly executions: number;
  /** Of a sample with a single execution: what has no other before it pays its start and its end alone. */
  readonly aloneMs: number;
  /** Copy engines moved the bytes, asked for or not. */
  readonly byCopyEngines: boolean;
}

export interface RowOptions extends TransferOptions {
  /** In a sample. */
  readonly executions: number;
  readonly ceiling: Ceiling;
  /** Of a row's sampling, in milliseconds. */
  readonly budgetMs?: number;
  /** The {@link RowTime.copyBytes} of an execution that makes these bytes travel: `matrix` from rank to rank, of a source of `sourceBytes`. */
  copyBytes(traffic: {
    readonly matrix: readonly (readonly number[])[];
    readonly sourceBytes: number;
    readonly bytes: number;
  }): number;
  readonly signal: AbortSignal;
}

/** Median times: executions back to back, one alone, and copies, in turns. Collective. */
export async function measureRow(
  world: BenchWorld,
  row: BenchRow,
  { executions, ceiling, copyBytes, budgetMs, signal, sms }: RowOptions,
): Promise<M2nTime> {
  return withTransfer(world, row, { sms }, async (ranks, plan) => {
    const execute = async (count: number): Promise<number> => {
      const ms = await timeAll(ranks, ({ transfer, stream }: TransferRank) => {
        for (let i = 0; i < count; i++) transfer.enqueue(stream);
      });
      return ms / count;
    };
    const measures = [() => execute(executions), () => ceiling.copy()];
    if (executions > 1) measures.push(() => execute(1));
    const options = { together: world, ...(budgetMs === undefined ? {} : { budgetMs }) };
    const [samples, copies, single] = await repeatTimed(measures, signal, options);
    const bytes = plan.totals.wireBytes + plan.totals.localBytes;
    const { matrix } = plan.explain();
    const byCopyEngines = await world.gather('paths', ranks.map(sendsByCopyEngines));
    return {
      ms: median(samples!),
      aloneMs: median(single ?? samples!),
      byCopyEngines: byCopyEngines.some(Boolean),
      executions,
      bytes,
      copyBytes: copyBytes({ matrix, sourceBytes: row.source.bytes, bytes }),
      samples: samples!.length,
      ceilingMs: median(copies!),
      ceilingBytes: ceiling.bytes,
    };
  });
}

function sendsByCopyEngines({ transfer }: TransferRank): boolean {
  return transfer.paths().some(({ path }) => path === 'copy-engine');
}

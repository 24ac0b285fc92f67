// SPDX-License-Identifier: Apache-2.0
// What `bench m2n` found, as the reports and the tools that read its JSON take it.

import type { MachineFacts } from './machine.js';
import type { M2nTime } from './measure-row.js';
import type { StepTime } from './measure-step.js';

/** What plain copies reach. */
export interface CopyCeiling {
  /** In words. */
  readonly how: string;
  readonly gigabytesPerSecond: number;
  readonly bytes: number;
  /** Between GPUs: what the data sheet says of the links of one GPU, each direction. */
  readonly nominalGigabytesPerSecond?: number;
}

/** SMs that a rank may use; both are 0 where copy engines moved the bytes. */
export interface SmBudget {
  readonly senders: number;
  readonly receivers: number;
}

export interface M2nRow extends M2nTime {
  readonly name: string;
  /** Of the tensor; with replicas more are written. */
  readonly tensorBytes: number;
  /** Of the CUDA backends. */
  readonly sms?: SmBudget;
}

export interface StepRow extends StepTime {
  readonly sms?: SmBudget;
}

export interface BenchResult {
  readonly machine: MachineFacts;
  readonly backend: string;
  readonly ranks: number;
  /** 1, or one per rank. */
  readonly processes: number;
  /** Of the embedded backend. */
  readonly workers?: number;
  /** Of the CUDA backends: the GPUs that ranks are on, and how many ranks the fullest one has. */
  readonly device?: { readonly name: string; readonly gpus: number; readonly ranksPerGpu: number };
  /** Measured first, alone. */
  readonly ceiling: CopyCeiling;
  readonly rows: readonly M2nRow[];
  /** Rows that copy engines cannot do alone, and why. */
  readonly leftOut?: readonly string[];
  readonly steps: readonly StepRow[];
}

/** The time of plain copies that {@link M2nRow.copyBytes} speaks of, at the pace of the copies beside the row; milliseconds. */
export function boundOf(row: Pick<M2nTime, 'copyBytes' | 'ceilingMs' | 'ceilingBytes'>): number {
  return (row.copyBytes / row.ceilingBytes) * row.ceilingMs;
}

export function smsText({ senders, receivers }: SmBudget): string {
  return senders === receivers ? String(senders) : `${senders}+${receivers}`;
}

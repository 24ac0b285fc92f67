// SPDX-License-Identifier: Apache-2.0
// All ranks or none: when one fails or the user interrupts, the others must not wait for it for ever, nor stay behind.

import { Interruption } from '../interruption.js';
import { type RankEnd, RankProcess, type RankStart } from './rank-process.js';

/** How a run ended. */
export interface RunResult {
  /** By rank. */
  readonly ranks: readonly RankEnd[];
  /** The first rank that failed; the ones after it may have failed because of it. */
  readonly failure: RankEnd | undefined;
}

/** Milliseconds from the request to end until SIGKILL. */
const graceMs = 5000;

export function hasFailed({ exitCode }: RankEnd): boolean {
  return exitCode !== 0;
}

/** Runs one process for each of `starts`; fulfilled when none of them nor of what they started is left. */
export async function runRanks(starts: readonly RankStart[], signal: AbortSignal): Promise<RunResult> {
  const processes: RankProcess[] = [];
  // The last resort, for a second Ctrl-C or an error of ours.
  const killAll = (): void => {
    for (const one of processes) one.kill('SIGKILL');
  };
  let timer: NodeJS.Timeout | undefined;
  const stopAll = (name: NodeJS.Signals): void => {
    for (const one of processes) one.kill(name);
    timer ??= setTimeout(killAll, graceMs);
  };
  const onAbort = (): void => stopAll(signalToPassOn(signal.reason));
  process.once('exit', killAll);
  signal.addEventListener('abort', onAbort, { once: true });
  let failure: RankEnd | undefined;
  try {
    for (const start of starts) processes.push(new RankProcess(start));
    const ranks = await Promise.all(
      processes.map(async ({ ended }) => {
        const end = await ended;
        if (hasFailed(end) && failure === undefined && !signal.aborted) {
          failure = end;
          stopAll('SIGTERM');
        }
        return end;
      }),
    );
    await Promise.all(processes.map((one) => one.finish()));
    return { ranks, failure };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
    killAll();
    process.off('exit', killAll);
  }
}

function signalToPassOn(reason: unknown): NodeJS.Signals {
  return reason instanceof Interruption ? reason.signalName : 'SIGTERM';
}

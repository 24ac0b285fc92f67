// SPDX-License-Identifier: Apache-2.0
// Turns Ctrl-C and the requests of a scheduler to stop into an AbortSignal, so that work in progress can clean up behind itself.

import { constants } from 'node:os';

/** Signals that ask a process to end. */
type EndSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

const endSignals: readonly EndSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** The reason of the abort signal. */
export class Interruption extends Error {
  readonly signalName: EndSignal;

  constructor(signalName: EndSignal) {
    super(`interrupted by ${signalName}`);
    this.name = 'Interruption';
    this.signalName = signalName;
  }

  /** What a shell expects of a process that a signal ended. */
  get exitCode(): number {
    return 128 + constants.signals[this.signalName];
  }
}

export interface InterruptionWatch {
  readonly signal: AbortSignal;
  stop(): void;
}

/** Aborts on the first signal; a second one ends the process at once, for whoever does not want to wait for the clean-up. */
export function watchInterruption(target: NodeJS.Process): InterruptionWatch {
  const controller = new AbortController();
  const onSignal = (name: NodeJS.Signals): void => {
    const interruption = new Interruption(name as EndSignal);
    if (controller.signal.aborted) target.exit(interruption.exitCode);
    controller.abort(interruption);
  };
  for (const name of endSignals) target.on(name, onSignal);
  return {
    signal: controller.signal,
    stop: () => {
      for (const name of endSignals) target.off(name, onSignal);
    },
  };
}

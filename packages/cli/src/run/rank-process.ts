// SPDX-License-Identifier: Apache-2.0
// One rank: a process of its own group, so that a signal reaches all that it started, and Ctrl-C in a terminal reaches it once.

import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import type { PrefixedLines } from './prefixed-lines.js';

/** How a rank ended. */
export interface RankEnd {
  readonly rank: number;
  /** Null when a signal ended it, or when it never started. */
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Milliseconds from start to end. */
  readonly ms: number;
  /** Why it did not start. */
  readonly error?: string;
}

/** What to start, and where its output goes. */
export interface RankStart {
  readonly rank: number;
  /** Arguments of Node: its own, the script, the script's. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: PrefixedLines;
  readonly stderr: PrefixedLines;
}

/** Milliseconds for output that is still in the pipes when the whole group has ended. */
const drainMs = 1000;

export class RankProcess {
  readonly rank: number;
  /** Fulfilled when the process has ended; processes that it started may still run. */
  readonly ended: Promise<RankEnd>;
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;

  constructor({ rank, args, env, stdout, stderr }: RankStart) {
    this.rank = rank;
    const started = performance.now();
    const child = spawn(process.execPath, args, {
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    this.ended = new Promise((resolve) => {
      const end = (facts: Omit<RankEnd, 'rank' | 'ms'>): void =>
        resolve({ rank, ...facts, ms: Math.round(performance.now() - started) });
      child.once('exit', (exitCode, signal) => end({ exitCode, signal }));
      child.once('error', ({ message }) => end({ exitCode: null, signal: null, error: message }));
    });
    this.#closed = Promise.all([passOn(child.stdout, stdout), passOn(child.stderr, stderr)]);
  }

  /** Sends a signal to the process and all of its group. */
  kill(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // ESRCH: none of them is left.
    }
  }

  /** Ends what the process left behind and writes the last of its output. */
  async finish(): Promise<void> {
    this.kill('SIGKILL');
    // A process that left the group may hold the pipes open for ever.
    const timer = setTimeout(() => {
      this.#child.stdout?.destroy();
      this.#child.stderr?.destroy();
    }, drainMs);
    await this.#closed;
    clearTimeout(timer);
  }
}

/** Fulfilled when the stream has closed and its last line is written. */
function passOn(stream: Readable | null, lines: PrefixedLines): Promise<void> {
  // Null when the process did not start for want of file descriptors.
  if (stream === null || stream === undefined) return Promise.resolve();
  stream.setEncoding('utf8');
  stream.on('data', (text: string) => lines.add(text));
  return new Promise((resolve) => {
    const end = (): void => {
      lines.end();
      resolve();
    };
    stream.once('close', end);
  });
}

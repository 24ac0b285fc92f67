// SPDX-License-Identifier: Apache-2.0
// Runs a module of the user's Python quietly: what it prints is for errors, and an interruption ends it before we go on.

import { spawn } from 'node:child_process';
import { NcclExtError } from '@nccl-ext/core';

export interface PythonRun {
  /** The module and its arguments, as after `python3 -m`. */
  readonly module: readonly string[];
  /** Python looks for modules in its working folder first, so this must be one of ours. It takes temporary files too. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

export interface PythonResult {
  readonly ok: boolean;
  /** The last lines of what it said. */
  readonly said: string;
}

/**
 * Resolves when the process has ended.
 *
 * @throws ERR_NCCL_NOT_FOUND where there is no Python
 */
export async function runPython({ module, folder, env, signal }: PythonRun): Promise<PythonResult> {
  signal.throwIfAborted();
  const child = spawn('python3', ['-m', ...module], {
    cwd: folder,
    env: { ...env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: python3 may be a script around the real one (pyenv), and both must end.
    detached: true,
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-saidLimit);
    });
  }
  const end = (): void => endGroup(child.pid);
  signal.addEventListener('abort', end, { once: true });
  let problem: Error | undefined;
  child.on('error', (error) => {
    problem = error;
  });
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  signal.removeEventListener('abort', end);
  signal.throwIfAborted();
  if (problem !== undefined) throw noPython(problem);
  return { ok: code === 0, said: lastLines(said) };
}

/** What pip leaves unfinished lies in the working folder, so nobody need ask it to clean up. */
function endGroup(leader: number | undefined): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, 'SIGTERM');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Characters that are kept of the output. */
const saidLimit = 4000;

function lastLines(text: string): string {
  const lines = text.split(/[\r\n]+/).filter((line) => line.trim() !== '');
  return lines.slice(-4).join('\n');
}

function noPython(cause: Error): NcclExtError {
  const help = [
    'Install Python 3 with pip; it brings wheels and unpacks them.',
    'Or unpack the wheel elsewhere (it is a zip archive) and set NCCL_EXT_NCCL_LIBRARY to its nvidia/nccl/lib/libnccl.so.2.',
  ].join('\n');
  return new NcclExtError('ERR_NCCL_NOT_FOUND', `python3 cannot be run: ${cause.message}.`, { help, cause });
}

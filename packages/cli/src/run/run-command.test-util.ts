// SPDX-License-Identifier: Apache-2.0
// `nccl-ext run` as a shell sees it, in a folder of scripts that behave well and badly.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll } from 'vitest';

const bin = fileURLToPath(new URL('../../bin/nccl-ext.mjs', import.meta.url));
let folder: string;

const scripts = {
  'hello.mjs': `
    process.stdout.write('rank ' + process.env.RANK + ' ' + JSON.stringify(process.argv.slice(2)) + '\\n');
    process.stderr.write('warned\\n');`,
  'environment.mjs': `
    const names = ['RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT',
      'NCCL_EXT_PORT', 'NCCL_EXT_ADDR', 'NCCL_EXT_TOKEN', 'OMPI_COMM_WORLD_SIZE', 'KEPT'];
    process.stdout.write(JSON.stringify(Object.fromEntries(names.map((name) => [name, process.env[name]]))) + '\\n');
    process.stdout.write(JSON.stringify(process.execArgv) + '\\n');`,
  // Lines in pieces that do not end where lines do, so that ranks interleave within lines unless they are put together.
  'pieces.mjs': `
    const text = Array.from({ length: 200 }, (_, i) => process.env.RANK + ':' + i + ':' + 'x'.repeat(i) + 'é').join('\\n') + '\\n';
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += 97) {
      await new Promise((resolve) => process.stdout.write(bytes.subarray(at, at + 97), resolve));
    }`,
  'partial.mjs': `process.stdout.write('one\\ntwo'); process.stderr.write('three');`,
  'fails.mjs': `
    if (process.env.RANK === '1') process.exitCode = 7;
    else if (process.env.RANK === '2') process.stdout.write('done\\n');
    else setInterval(() => {}, 1000);`,
  'killed.mjs': `
    if (process.env.RANK === '0') process.kill(process.pid, 'SIGKILL');
    setInterval(() => {}, 1000);`,
  'stubborn.mjs': `
    if (process.env.RANK === '0') setTimeout(() => process.exit(1), 500);
    process.on('SIGTERM', () => process.stdout.write('no\\n'));
    setInterval(() => {}, 1000);`,
  // Takes notice of no signal that it can help.
  'stubborn-alone.mjs': `
    process.on('SIGINT', () => process.stdout.write('no\\n'));
    process.stdout.write('pid ' + process.pid + '\\n');
    setInterval(() => {}, 1000);`,
  // Starts a process of its own, and says both ids.
  'waits.mjs': `
    import { spawn } from 'node:child_process';
    const own = spawn(process.execPath, ['-e', 'process.on("SIGINT", () => {}); setInterval(() => {}, 1000)'], { stdio: 'inherit' });
    let signals = 0;
    for (const name of ['SIGINT', 'SIGTERM']) {
      process.on(name, () => {
        signals += 1;
        process.stdout.write('got ' + name + ' ' + signals + '\\n');
        setTimeout(() => process.exit(0), 100);
      });
    }
    setTimeout(() => process.stdout.write('ready ' + process.pid + ' ' + own.pid + '\\n'), 300);
    setInterval(() => {}, 1000);`,
};

/** Writes the scripts, and removes them after the tests of a file. */
export function useScripts(): void {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nccl-ext-run-'));
    for (const [name, text] of Object.entries(scripts)) await writeFile(join(folder, name), text);
  });
  afterAll(() => rm(folder, { recursive: true }));
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function start(args: readonly string[], env: Record<string, string>, execArgv: string[]): ChildProcess {
  const clean = Object.entries(process.env).filter(
    ([name]) => !/^(NCCL|NODE_|FORCE_COLOR|RANK|OMPI_)/.test(name),
  );
  return spawn(process.execPath, [...execArgv, bin, ...args], {
    cwd: folder,
    env: { ...Object.fromEntries(clean), ...env },
  });
}

/** Runs the command; `onStdout` sees all of stdout whenever there is more. */
export async function run(
  line: string,
  {
    env = {},
    execArgv = [],
    onStdout,
  }: {
    env?: Record<string, string>;
    execArgv?: string[];
    onStdout?: (text: string, child: ChildProcess) => void;
  } = {},
): Promise<Ended> {
  const child = start(line.split(' '), env, execArgv);
  let [stdout, stderr] = ['', ''];
  child.stdout!.setEncoding('utf8').on('data', (text) => {
    stdout += text;
    onStdout?.(stdout, child);
  });
  child.stderr!.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { code, stdout, stderr };
}

export function sortedLines(text: string): string[] {
  return text.split('\n').slice(0, -1).sort();
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

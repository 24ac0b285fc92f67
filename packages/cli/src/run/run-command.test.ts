// SPDX-License-Identifier: Apache-2.0
// `nccl-ext run` as a shell sees it: whole lines, the failure of one ends all, and no process stays behind.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { version } from '@nccl-ext/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

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

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nccl-ext-run-'));
  for (const [name, text] of Object.entries(scripts)) await writeFile(join(folder, name), text);
});
afterAll(() => rm(folder, { recursive: true }));

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
async function run(
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

function sortedLines(text: string): string[] {
  return text.split('\n').slice(0, -1).sort();
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe('nccl-ext run', () => {
  it('runs a script once per rank and says whose each line is', async () => {
    const { code, stdout, stderr } = await run('run -n 3 hello.mjs --json -h a');
    expect(code).toBe(0);
    expect(sortedLines(stdout)).toEqual(
      [0, 1, 2].map((rank) => `[${rank}] rank ${rank} ["--json","-h","a"]`),
    );
    expect(sortedLines(stderr)).toEqual(['[0] warned', '[1] warned', '[2] warned']);
  });

  it('takes -- before the script, and a -- after it is for the script', async () => {
    expect((await run('run --ranks=1 -- ./hello.mjs -- b')).stdout).toBe('[0] rank 0 ["--","b"]\n');
  });

  it('tells ranks who they are and where they meet', async () => {
    const { stdout } = await run('run -n 2 environment.mjs', {
      env: {
        KEPT: 'yes',
        NCCL_EXT_ADDR: 'elsewhere',
        OMPI_COMM_WORLD_SIZE: '9',
        MASTER_PORT: '1',
        NCCL_EXT_TOKEN: 'old',
      },
      execArgv: ['--no-warnings'],
    });
    const lines = sortedLines(stdout);
    expect(lines.filter((line) => line.endsWith('["--no-warnings"]'))).toHaveLength(2);
    const seen = lines
      .filter((line) => line.endsWith('}'))
      .map((line): Record<string, string> => JSON.parse(line.slice('[0] '.length)));
    expect(seen).toEqual(
      [0, 1].map((rank) => ({
        RANK: `${rank}`,
        WORLD_SIZE: '2',
        LOCAL_RANK: `${rank}`,
        LOCAL_WORLD_SIZE: '2',
        MASTER_ADDR: '127.0.0.1',
        MASTER_PORT: expect.stringMatching(/^\d{4,5}$/),
        NCCL_EXT_PORT: expect.stringMatching(/^\d{4,5}$/),
        NCCL_EXT_TOKEN: expect.stringMatching(/^[0-9a-f]{64}$/),
        KEPT: 'yes',
      })),
    );
    for (const name of ['MASTER_PORT', 'NCCL_EXT_PORT', 'NCCL_EXT_TOKEN']) {
      expect(seen[0]![name]).toBe(seen[1]![name]);
    }
    expect(seen[0]!.NCCL_EXT_PORT).not.toBe(seen[0]!.MASTER_PORT);
  });

  it('keeps lines whole', async () => {
    const { code, stdout } = await run('run -n 4 pieces.mjs');
    expect(code).toBe(0);
    const expected = [0, 1, 2, 3].flatMap((rank) =>
      Array.from({ length: 200 }, (_, i) => `[${rank}] ${rank}:${i}:${'x'.repeat(i)}é`),
    );
    expect(sortedLines(stdout)).toEqual(expected.sort());
  });

  it('ends the last line where a rank did not', async () => {
    const { stdout, stderr } = await run('run -n 1 partial.mjs');
    expect({ stdout, stderr }).toEqual({ stdout: '[0] one\n[0] two\n', stderr: '[0] three\n' });
  });

  it('prints one JSON object, and what ranks print to stderr', async () => {
    const { code, stdout, stderr } = await run('run --json -n 2 hello.mjs');
    expect(code).toBe(0);
    expect(stdout.split('\n')).toHaveLength(2);
    const end = (rank: number) => ({ rank, exitCode: 0, signal: null, ms: expect.any(Number) });
    expect(JSON.parse(stdout)).toEqual({ ok: true, ranks: [end(0), end(1)] });
    expect(sortedLines(stderr)).toEqual(['[0] rank 0 []', '[0] warned', '[1] rank 1 []', '[1] warned']);
  });
});

describe('a failing rank', () => {
  it('ends the others quickly and is named', async () => {
    const { code, stdout, stderr } = await run('run --json -n 4 fails.mjs');
    expect(code).toBe(1);
    expect(stderr).toMatch(/^failed rank 1 ended with exit code 7 after /m);
    const { ok, ranks } = JSON.parse(stdout);
    expect(ok).toBe(false);
    expect(ranks).toMatchObject([
      { rank: 0, exitCode: null, signal: 'SIGTERM' },
      { rank: 1, exitCode: 7, signal: null },
      { rank: 2 },
      { rank: 3, exitCode: null, signal: 'SIGTERM' },
    ]);
    for (const { ms } of ranks) expect(ms).toBeLessThan(4500);
  });

  it('may be ended by a signal', async () => {
    const { code, stdout, stderr } = await run('run -n 2 killed.mjs');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^failed rank 0 was ended by SIGKILL after .*\n {2}1 other rank ended because/);
  });

  it('ends others by force when they do not end when asked', async () => {
    const { code, stdout } = await run('run --json -n 2 stubborn.mjs');
    expect(code).toBe(1);
    const { ranks } = JSON.parse(stdout);
    expect(ranks).toMatchObject([{ exitCode: 1 }, { exitCode: null, signal: 'SIGKILL' }]);
    expect(ranks[1].ms).toBeGreaterThan(4900);
  });
});

describe('interruption', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s is passed on once, nothing stays behind, exit code %i', async (signal, exit) => {
    let pids: number[] = [];
    const { code, stdout, stderr } = await run('run -n 2 waits.mjs', {
      onStdout: (text, child) => {
        const ready = [...text.matchAll(/ready (\d+) (\d+)\n/g)];
        if (pids.length > 0 || ready.length < 2) return;
        pids = ready.flatMap(([, own, other]) => [Number(own), Number(other)]);
        child.kill(signal);
      },
    });
    expect(code).toBe(exit);
    expect(stderr).toContain('interrupted: nothing was left behind');
    expect(sortedLines(stdout).filter((line) => line.includes('got'))).toEqual([
      `[0] got ${signal} 1`,
      `[1] got ${signal} 1`,
    ]);
    expect(pids).toHaveLength(4);
    await expect.poll(() => pids.filter(isAlive), { timeout: 5000 }).toEqual([]);
  });

  it('ends ranks by force on a second signal', async () => {
    let pid = 0;
    const started = performance.now();
    const { code } = await run('run -n 1 stubborn-alone.mjs', {
      onStdout: (text, child) => {
        if (pid === 0) pid = Number(/pid (\d+)/.exec(text)?.[1]);
        child.kill('SIGINT');
      },
    });
    expect(code).toBe(130);
    expect(performance.now() - started).toBeLessThan(4500);
    await expect.poll(() => isAlive(pid), { timeout: 5000 }).toBe(false);
  });
});

describe('this command as the script', () => {
  it('needs no path', async () => {
    const { code, stdout } = await run('run -n 2 nccl-ext --version');
    expect({ code, lines: sortedLines(stdout) }).toEqual({
      code: 0,
      lines: [`[0] ${version}`, `[1] ${version}`],
    });
  });

  it('cannot spread the self test over processes on the embedded backend', async () => {
    const { code, stdout, stderr } = await run('run -n 2 nccl-ext selftest --backend embedded');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/\[\d\] .*ERR_SINGLE_PROCESS The embedded backend has all ranks in one process/);
    expect(stderr).toMatch(/\[\d\] .*Call `nccl-ext selftest` without a launcher/);
    expect(stderr).toMatch(/^failed rank \d ended with exit code 1/m);
  });
});

describe('commands that make all ranks themselves', () => {
  it.each([
    ['refit', '--model Qwen3-0.6B --layers 1 --from tp=1 --to tp=1'],
    ['bench ep', ''],
  ])('%s refuses to be started several times', async (command, rest) => {
    const { code, stderr } = await run(`run -n 2 nccl-ext ${command} ${rest}`.trim());
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /\[\d\] .*ERR_LAUNCHER .* makes all ranks in its own process, but a launcher started 2/,
    );
    expect(stderr).toContain(`Call \`nccl-ext ${command}\` without a launcher.`);
  });
});

describe('wrong use', () => {
  it.each([
    ['run -n 2', 'The script is missing.', 'nccl-ext run -n 4 script.mjs'],
    ['run -n 2 --', 'The script is missing.', 'nccl-ext run -n 4 script.mjs'],
    ['run hello.mjs -n 2', '--ranks is missing.', 'before the script'],
    ['run -n 2 absent.mjs', 'The script absent.mjs is not a file.', 'Looked for /'],
    ['run -n 2 .', 'The script . is not a file.', 'Looked for /'],
    ['run -n 0 hello.mjs', '--ranks is "0"', 'from 1 to 1024'],
    ['run -n 1025 hello.mjs', '--ranks is "1025"', 'from 1 to 1024'],
    ['run -n 2 --rank 3 hello.mjs', 'has no option --rank', 'Did you mean --ranks?'],
  ])('%j is 2, says what is wrong and what to do', async (line, message, help) => {
    const { code, stdout, stderr } = await run(line);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).toContain(help);
  });

  it.each(['RANK', 'OMPI_COMM_WORLD_RANK'])('is refused where a launcher set %s', async (name) => {
    const { code, stdout, stderr } = await run('run -n 2 hello.mjs', { env: { [name]: '0' } });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(`a launcher started it: ${name} is 0.`);
    expect(stderr).toContain(`unset ${name}`);
  });

  it('shows help, the script need not be right', async () => {
    const { code, stdout } = await run('run --help absent.mjs');
    expect(code).toBe(0);
    expect(stdout).toContain('nccl-ext run -n N [options] [--] SCRIPT [ARGUMENT...]');
    expect(stdout).toMatch(/\nExamples\n {2}# /);
  });
});

// SPDX-License-Identifier: Apache-2.0
// The built command as a shell sees it: exit codes, one JSON object, errors on stderr, files whole or absent.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeTinyCheckpoint } from './tiny-checkpoint.test-util.js';

const bin = fileURLToPath(new URL('../bin/nccl-ext.mjs', import.meta.url));
let folder: string;
let checkpoint: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nccl-ext-cli-'));
  await mkdir(join(folder, 'tiny'));
  checkpoint = join(folder, 'tiny', 'model.safetensors');
  await writeTinyCheckpoint(checkpoint);
});
afterAll(() => rm(folder, { recursive: true }));

/** A manifest: rank 0 has one tensor. */
const oneTensor = {
  format: 'nccl-ext.m2n.manifest',
  version: 1,
  ranks: [
    {
      rank: 0,
      tensors: [
        {
          ...{ name: 'w', dtype: 'BF16', shape: [8] },
          pieces: [{ source: 'w', global: { start: [0], size: [8] } }],
        },
      ],
    },
  ],
};

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function start(args: readonly string[], env: Record<string, string> = {}): ChildProcess {
  // In the folder, without variables of this test run: package managers put GPU backends of the clone on NODE_PATH.
  const clean = Object.entries(process.env).filter(([name]) => !/^(NCCL|NODE_|FORCE_COLOR|RANK)/.test(name));
  return spawn(process.execPath, [bin, ...args], {
    cwd: folder,
    env: { ...Object.fromEntries(clean), ...env },
  });
}

async function run(args: readonly string[], env?: Record<string, string>): Promise<Ended> {
  const child = start(args, env);
  let [stdout, stderr] = ['', ''];
  child.stdout!.on('data', (text) => {
    stdout += text;
  });
  child.stderr!.on('data', (text) => {
    stderr += text;
  });
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { code, stdout, stderr };
}

/** The only line of stdout, parsed. */
async function json(
  args: readonly string[],
  env?: Record<string, string>,
): Promise<Ended & { value: Record<string, unknown> }> {
  const ended = await run([...args, '--json'], env);
  expect(ended.stdout.split('\n')).toHaveLength(2);
  return { ...ended, value: JSON.parse(ended.stdout) };
}

describe('help', () => {
  it.each([
    [[], 'nccl-ext COMMAND'],
    [['plan'], 'nccl-ext plan COMMAND'],
    [['refit'], 'nccl-ext refit (--checkpoint PATH | --model NAME)'],
    [['plan', 'm2n'], 'nccl-ext plan m2n (--checkpoint PATH | --model NAME)'],
    [['doctor'], 'nccl-ext doctor [options]'],
    [['bench', 'm2n'], 'nccl-ext bench m2n [options]'],
    [['selftest'], 'nccl-ext selftest [options]'],
    [['nccl', 'install'], 'nccl-ext nccl install [options]'],
    [['plan', 'm2n'], 'nccl-ext plan m2n --from-manifest FILE --to-manifest FILE [options]'],
    [['plan', 'ep'], 'nccl-ext plan ep --trace FILE [options]'],
    [['bench', 'ep'], 'nccl-ext bench ep [options]'],
    [[], 'plan m2n      Plan the move of a model'],
    [[], 'plan ep       Plan a step of expert parallelism'],
    [[], 'bench m2n     Measure'],
  ])('%j --help shows usage, options and examples', async (words, usage) => {
    const { code, stdout, stderr } = await run([...words, '--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(usage);
    expect(stdout).toMatch(/\nExamples\n {2}# /);
    expect(stdout).not.toContain('\u001b');
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThan(160);
  });

  it('has a version', async () => {
    expect((await run(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+/);
  });
});

describe('wrong use', () => {
  it.each([
    [['refti'], 'There is no command `nccl-ext refti`.', 'Did you mean `nccl-ext refit`?'],
    [[], '`nccl-ext` needs a command.', 'refit, plan m2n, plan ep, doctor, bench m2n, bench ep, selftest'],
    [['plan'], '`nccl-ext plan` needs a command.', 'm2n'],
    [['refit', '--form', 'tp=2'], 'has no option --form', 'Did you mean --from?'],
    [
      ['refit', '--model', 'Qwen3-0.6B', '--from', 'tp=2'],
      '--to or --to-manifest is missing.',
      'Give exactly one',
    ],
    [['refit', '--model', 'Qwen3-0.6B', '--from', 'tp=x', '--to', 'tp=1'], 'tp=x', 'tp=4,pp=2'],
    [['refit', '--model', 'Qwen9', '--from', 'tp=1', '--to', 'tp=1'], 'Qwen9', 'Qwen3-0.6B'],
    [
      ['refit', '--model', 'Qwen3-0.6B', '--from', 'tp=1', '--to', 'tp=1', '--cast', 'int4'],
      '--cast is "int4"',
      '',
    ],
    [
      ['refit', '--checkpoint', 'absent.safetensors', '--from', 'tp=1', '--to', 'tp=1'],
      'absent.safetensors',
      '',
    ],
    [['refit', '--report', '/proc/report.html'], '--report /proc/report.html', 'existing folder'],
    [['refit', '--report', 'no/such/folder.html'], '--report no/such/folder.html', 'existing folder'],
    [
      ['plan', 'm2n', '--model', 'Qwen3-0.6B', '--from', 'tp=1', '--to', 'tp=1', '--rank', '9'],
      '--rank is 9',
      '',
    ],
    [
      ['plan', 'm2n', '--model', 'Qwen3-0.6B', '--from', 'tp=1', '--to', 'tp=1', '--topology', 'dgx'],
      'dgx',
      'dgx-h100',
    ],
    [['bench', 'm2n', '--ranks', '6'], '--ranks is "6"', ''],
    [['bench', 'm2n', '--bytes', '64MiB,much'], '--bytes is "much"', ''],
    [['bench', 'm2n', '--save', 'bench.txt'], '--save bench.txt does not end in .json', ''],
    [['bench', 'm2n', '--sms', '8', '--sweep', '8,16'], '--sms and --sweep exclude each other', ''],
    [['bench', 'm2n', '--sms', '-1'], '--sms is "-1"', ''],
    [['bench', 'm2n', '--sweep', '8,,16'], '--sweep is "8,,16"', ''],
    [['bench', 'm2n', '--sweep', '8,16'], '--sweep is for GPUs', '--backend cuda'],
    [['selftest', '--path', 'sendrecv'], '--path is for GPUs', '--backend cuda'],
    [['selftest', '--group', 'graphs,'], '--group is "graphs,"', ''],
    [['refit', '--sms', '28,4'], '--sms is for GPUs', '--backend cuda'],
    [['refit', '--from-gpus', '0-3'], '--to-gpus is missing.', 'Give both'],
    [['bench', 'ep', '--layout', 'flat,flat'], '--layout is "flat,flat"', ''],
    [['bench', 'ep', '--hidden', '12'], 'hidden must make rows of a multiple of 16 bytes', ''],
    [['bench', 'ep', '--experts', '4', '--top-k', '5'], '--top-k is 5, but there are 4 experts', ''],
    [['plan', 'ep', '--layout', 'wide'], '--layout is "wide"', ''],
    [['plan', 'ep', '--trace', 'absent.json'], '--trace absent.json cannot be read', 'topkIdx'],
    [['plan', 'ep', '--trace', 'x.json', '--seed', '2'], '--seed is for made-up routings', ''],
    [['plan', 'ep', '--skew', 'much', '--routing', 'zipf'], '--skew is "much"', ''],
    [['plan', 'ep', '--skew', '2'], '--skew is for --routing zipf; this is uniform', 'Leave it out'],
    [['plan', 'ep', '--alignment', '16'], '--alignment is for --layout packed; this is flat', 'Leave it out'],
    [['plan', 'ep', '--dtype', 'int8'], '--dtype is "int8"; it must be one of bf16, f16, f32', ''],
    [['bench', 'ep', '--dtype', 'int8'], '--dtype is "int8"; it must be one of bf16, f16, f32', ''],
    [['bench', 'm2n', '--bytes', '1'], 'a number of bytes from 16 MiB to 64 GiB', 'as in'],
    [['bench', 'm2n', '--path', 'sendrecv'], '--path is for GPUs', '--backend cuda'],
    [['refit', '--path', 'sendrecv'], '--path is for GPUs', '--backend cuda'],
    [['refit', '--path', 'fast'], '--path is "fast"', 'auto, mapped, sendrecv'],
    [['plan', 'ep', '--ranks', '16', '--topology', 'single-node'], 'single-node', ''],
    [['selftest', '--group', 'nothing'], 'nothing', ''],
    [['selftest', '--filter', 'no such case'], 'No case matches --filter.', 'Leave it out'],
    [
      ['selftest', '--group', 'graphs', '--filter', 'no such case'],
      'No case matches --group and --filter together.',
      'Leave one of them out.',
    ],
  ])('%j is 2, says what is wrong and what to do', async (args, message, help) => {
    const { code, stdout, stderr } = await run(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).toContain(help);
    expect(stderr).not.toMatch(/\n\s+at /);
  });

  it.each([
    [['--from-view', 'vllm'], '--from-view is for --from;'],
    [['--cast', 'bf16'], '--cast is for --to;'],
    [['--layers', '1'], '--layers is for --from and --to;'],
    [['--rules', 'qwen3'], '--rules is for --from and --to;'],
  ])('refuses %j beside manifests, which it would not change', async (args, message) => {
    const manifest = join(folder, 'manifest.json');
    await writeFile(manifest, JSON.stringify(oneTensor));
    const sides = ['--from-manifest', manifest, '--to-manifest', manifest, '--colocated'];
    expect((await run(['plan', 'm2n', ...sides])).code).toBe(0);
    const { code, stderr } = await run(['plan', 'm2n', ...sides, ...args]);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  it('is a JSON object with --json', async () => {
    const { code, stderr, value } = await json(['refit', '--form', 'tp=2']);
    expect({ code, stderr }).toEqual({ code: 2, stderr: '' });
    expect(value).toEqual({
      ok: false,
      error: expect.objectContaining({
        code: 'ERR_INVALID_ARGUMENT',
        help: 'Did you mean --from?',
        field: '--form',
      }),
    });
  });

  it('refuses a truncated checkpoint before anything moves', async () => {
    const broken = join(folder, 'broken.safetensors');
    await writeFile(broken, (await readFile(checkpoint)).subarray(0, 5000));
    const { code, value } = await json(['refit', '--checkpoint', broken, '--from', 'tp=1', '--to', 'tp=1']);
    expect(code).toBe(2);
    expect(value).toMatchObject({ ok: false, error: { code: 'ERR_CHECKPOINT' } });
  });
});

describe('refit', () => {
  const sides = ['--from', 'tp=4', '--to', 'tp=2,dp=2'];

  it('moves a checkpoint, verifies it and writes a report', async () => {
    const report = join(folder, 'report.html');
    const args = ['refit', '--checkpoint', checkpoint, ...sides, '--verify', '--report', report];
    const { code, stderr, value } = await json(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(value).toMatchObject({
      ok: true,
      tensors: 24,
      ranks: 8,
      backend: 'embedded',
      verified: true,
      version: 1,
      report,
      from: 'tp=4',
      to: 'tp=2,dp=2',
    });
    expect(value.wireBytes).toBe(value.lowerBoundBytes);
    expect(value.digest).toMatch(/^[0-9a-f]{64}$/);
    const phases = ['plan', 'load', 'prepare', 'pause', 'move', 'verify', 'stall', 'check'];
    for (const name of [...phases.map((phase) => `${phase}Ms`), 'gigabytesPerSecond'])
      expect(value[name]).toBeGreaterThan(0);
    const html = await readFile(report, 'utf8');
    expect(html).toMatch(/^<!doctype html>/);
    expect(html).toContain('--from tp=4 --to tp=2,dp=2 --verify');
  });

  it('says the same to a person, every number with its unit', async () => {
    const { code, stdout, stderr } = await run(['refit', '--checkpoint', join(folder, 'tiny'), ...sides]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^done .*B moved from tp=4 to tp=2,dp=2\n/);
    expect(stdout).toMatch(/move +[\d.]+ (us|ms), [\d.]+ [kMG]B\/s/);
    expect(stdout).toMatch(/stall +[\d.]+ (us|ms) from pause to published/);
    expect(stdout).toContain('no (add --verify)');
    expect(stdout).toContain('embedded backend (no GPU backend is installed)');
  });

  it('repeats, and tells the median and the first', async () => {
    const args = ['refit', '--checkpoint', checkpoint, ...sides, '--check', '--repeat', '3'];
    const { value } = await json(args);
    expect(value).toMatchObject({ version: 3, verified: true, hashed: false });
    const repeats = value.repeats as { stallMs: number }[];
    expect(repeats.length).toBe(3);
    expect(repeats.map(({ stallMs }) => stallMs)).toContain(value.stallMs);
    const { stdout } = await run(args);
    expect(stdout).toMatch(/stall .*median of 3; the first .* from pause to published/);
  });

  it('makes up values for a model, casts, and runs on the same ranks', async () => {
    const shapes = join(folder, 'model.json');
    await writeFile(shapes, '{"w": {"shape": [64, 64], "dtype": "F32"}}');
    const rules = join(folder, 'rules.json');
    await writeFile(rules, '{"name": "one", "rules": [{"match": "w", "cut": "column"}]}');
    const { code, value } = await json([
      ...['refit', '--model', shapes, '--rules', rules, '--from', 'tp=2', '--to', 'tp=2', '--colocated'],
      ...['--cast', 'BF16', '--verify', '--workers', '1', '--timeout', '20000', '--backend', 'embedded'],
    ]);
    expect(code).toBe(0);
    expect(value).toMatchObject({ ranks: 2, wireBytes: 0, localBytes: 64 * 64 * 2, verified: true });
  });

  it('fails, not misused, where the backend is not installed', async () => {
    const { code, value } = await json(['refit', '--checkpoint', checkpoint, ...sides, '--backend', 'cuda']);
    expect(code).toBe(1);
    expect(value).toMatchObject({ ok: false, error: { code: 'ERR_BACKEND_MISSING' } });
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('ends on %s with %i and leaves nothing behind', async (signal, exit) => {
    const own = join(folder, signal);
    await mkdir(own);
    // The values of a whole model take seconds; the log line says that ranks exist and loading begins.
    const child = start(
      ['refit', '--model', 'Qwen3-0.6B', ...sides, '--verify', '--report', join(own, 'report.html')],
      { NCCL_EXT_LOG_LEVEL: 'debug' },
    );
    let stderr = '';
    await new Promise<void>((resolve) => {
      child.stderr!.on('data', (text: Buffer) => {
        stderr += text.toString();
        if (stderr.includes('backend opened')) resolve();
      });
    });
    child.kill(signal);
    const code = await new Promise((resolve) => child.on('close', resolve));
    expect(code).toBe(exit);
    expect(stderr).toContain('interrupted: nothing was left behind');
    expect(await readdir(own)).toEqual([]);
  });
});

describe('plan m2n', () => {
  it('plans Kimi-K2 over thousands of ranks', async () => {
    const { code, value } = await json([
      ...['plan', 'm2n', '--model', 'Kimi-K2-Instruct', '--from', 'ranks=2048,pp=16,ep=128'],
      ...['--to', 'ranks=2048,tp=16', '--rank', '2047'],
    ]);
    expect(code).toBe(0);
    expect(value).toMatchObject({ ok: true, ranks: 4096, rank: 2047 });
    expect(value.wireBytes).toBe(value.lowerBoundBytes);
    expect(value.moves).toBeGreaterThan(1000);
    expect(value.patterns).toBeGreaterThan(5);
    expect(value.maxRankBytes).toBeGreaterThanOrEqual(value.meanRankBytes as number);
    expect(value.bytesByLink).toMatchObject({ nvlink: value.wireBytes });
  });

  it('writes the plan and pictures of it', async () => {
    const [output, svg] = [join(folder, 'plan.json'), join(folder, 'plan.svg')];
    const { code, value } = await json([
      ...[
        'plan',
        'm2n',
        '--checkpoint',
        checkpoint,
        '--from',
        'tp=4',
        '--to',
        'tp=2,dp=2',
        '--topology',
        'single-node',
      ],
      ...['--output', output, '--svg', svg, '--tensor', 'model.embed_tokens.weight'],
    ]);
    expect(code).toBe(0);
    expect(value).toMatchObject({ output, svg });
    expect(JSON.parse(await readFile(output, 'utf8'))).toMatchObject({ digest: value.digest });
    expect(await readFile(svg, 'utf8')).toMatch(/^<svg/);
  });
});

describe('plan ep', () => {
  it('plans a made-up routing', async () => {
    const args = [
      'plan',
      'ep',
      '--ranks',
      '16',
      '--tokens',
      '256',
      '--topology',
      'dgx-h100',
      '--layout',
      'packed',
    ];
    const { code, stderr, value } = await json([...args, '--alignment', '16', '--quantization', 'fp8']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(value).toMatchObject({
      ok: true,
      ranks: 16,
      experts: 256,
      topK: 8,
      entries: 16 * 256 * 8,
      notRouted: 0,
    });
    expect(value.rowBytes).toEqual({ dispatch: 7392, combine: 14336 });
    const { list, max } = value.receivedRows as { list: number[]; max: number };
    expect(list).toHaveLength(16);
    expect(list.every((rows) => rows % 16 === 0 && rows <= max)).toBe(true);
    const { dispatch } = value.lowerBound as { dispatch: { us: number; link: string } };
    expect(dispatch.us).toBeGreaterThan(1);
    expect(dispatch.link).toBe('network');
    expect((await json([...args, '--alignment', '16', '--quantization', 'fp8'])).value).toEqual(value);
  });

  it('plans what was recorded, by a configuration', async () => {
    const [trace, config] = [join(folder, 'trace.json'), join(folder, 'ep.json')];
    await writeFile(trace, '{"topkIdx": [[[0, 1], [2, -1]], [[1, 2]]]}');
    const placement = [
      [0, 1],
      [1, 2],
    ];
    await writeFile(
      config,
      JSON.stringify({ experts: { count: 3, placement }, hidden: 64, dtype: 'f32', maxTokensPerRank: 8 }),
    );
    const args = ['plan', 'ep', '--trace', trace, '--config', config];
    const { code, value } = await json(args);
    expect(code).toBe(0);
    // Expert 1 is on both ranks: the token of rank 1 takes the replica (1 + 0) modulo 2.
    expect(value).toMatchObject({ ranks: 2, topK: 2, maxTokensPerRank: 8, notRouted: 1 });
    expect((value.entriesPerExpert as { list: number[] }).list).toEqual([1, 1, 1, 2]);
    const { stdout } = await run(args);
    expect(stdout).toMatch(/^planned one step on 2 ranks\n/);
    expect(stdout).toMatch(/received rows +2 per rank at most/);
  });

  it.each([
    [{ hidden: 'wide' }, [], 'at hidden'],
    [{ hiden: 64 }, [], 'hiden'],
    [{ experts: { count: 4 } }, [], 'at experts'],
    [{ topK: 300 }, [], 'at topK'],
    [{ maxTokensPerRank: '8' }, [], 'at maxTokensPerRank'],
    [{ hidden: 12 }, [], 'hidden must make rows of a multiple of 16 bytes'],
    [{ experts: { count: 2, placement: [[0], [7]] } }, ['--ranks', '2'], 'experts.placement[1][0]'],
    [{ experts: { count: 2, placement: [[0, 1]] } }, ['--ranks', '2'], 'experts.placement'],
  ])('names the file of the configuration %j that is wrong', async (wrong, more, message) => {
    const file = join(folder, 'wrong-ep.json');
    await writeFile(file, JSON.stringify(wrong));
    const { code, value } = await json(['plan', 'ep', '--config', file, ...more]);
    expect(code).toBe(2);
    expect(value.error).toMatchObject({ code: 'ERR_INVALID_ARGUMENT', field: '--config' });
    const { message: said } = value.error as { message: string };
    expect(said).toContain(`--config ${file}: `);
    expect(said).toContain(message);
  });

  it('does not blame the file of a configuration for what an option says', async () => {
    const file = join(folder, 'right-ep.json');
    await writeFile(file, JSON.stringify({ hidden: 64 }));
    const { code, value } = await json(['plan', 'ep', '--config', file, '--hidden', '12']);
    expect(code).toBe(2);
    expect(value.error).toMatchObject({ field: 'hidden' });
  });
});

describe('doctor', () => {
  it('finds this machine usable', async () => {
    const { code, stderr, value } = await json(['doctor']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const checks = value.checks as { name: string; status: string; fix?: string }[];
    expect(checks).toContainEqual(expect.objectContaining({ name: 'Embedded backend', status: 'ok' }));
    for (const { status, fix } of checks) expect(fix === undefined).toBe(status === 'ok');
  });

  it('fails with a fix for what is broken, and warns of misspelt variables', async () => {
    const { code, stdout } = await run(['doctor'], {
      NCCL_EXT_BACKEND: 'cuda',
      NCCL_EXT_WORKER: '2',
      RANK: '1',
    });
    expect(code).toBe(1);
    expect(stdout).toMatch(/FAIL {2}Backend .*\n *fix: .*npm i/);
    expect(stdout).toMatch(/warn {2}NCCL_EXT_WORKER .*\n *fix: Did you mean NCCL_EXT_WORKERS\?/);
    expect(stdout).toMatch(/FAIL {2}Launcher /);
    expect(stdout).toContain('Not usable as it is');
  });

  it('looks at the backend that the command line names', async () => {
    const { code, value } = await json(['doctor', '--backend', 'cuda'], { NCCL_EXT_BACKEND: 'embedded' });
    expect(code).toBe(1);
    const [backend] = (value.checks as { name: string }[]).filter(({ name }) => name === 'Backend');
    expect(backend).toMatchObject({ status: 'failed', fix: expect.stringContaining('npm i') });
    expect(value.options).toContainEqual(
      expect.objectContaining({ option: 'backend', value: 'cuda', origin: 'call' }),
    );
    const { stdout } = await run(['doctor', '--backend', 'embedded'], { NCCL_EXT_BACKEND: 'cuda' });
    expect(stdout).toMatch(/ backend +embedded +--backend\n/);
  });

  it('has one line that explains a wrong variable, and no line that denies it', async () => {
    const { code, value } = await json(['doctor'], { NCCL_EXT_TIMEOUT_MS: 'abc' });
    expect(code).toBe(1);
    const checks = value.checks as { name: string; status: string; fix?: string }[];
    expect(checks.find(({ name }) => name === 'Options')).toBeUndefined();
    expect(checks.find(({ name }) => name === 'Embedded backend')?.fix).toBe(
      'See the line NCCL_EXT_TIMEOUT_MS.',
    );
  });
});

describe('selftest and bench', () => {
  it('runs a group of cases', async () => {
    const { code, stderr, value } = await json(['selftest', '--group', 'sharding', '--ranks', '4']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(value).toMatchObject({ ok: true, failed: 0 });
    const cases = value.cases as { group: string; status: string }[];
    expect(cases.length).toBe((value.passed as number) + (value.skipped as number));
    expect(cases.every(({ group }) => group === 'sharding')).toBe(true);
  });

  it('runs cases of expert parallelism', async () => {
    const { code, value } = await json(['selftest', '--group', 'ep', '--filter', 'top-1', '--ranks', '4']);
    expect(code).toBe(0);
    expect(value).toMatchObject({ ok: true, failed: 0, skipped: 0 });
    expect(value.passed).toBeGreaterThan(5);
  });

  it('measures expert parallelism', async () => {
    const sizes = ['--tokens', '8', '--hidden', '512', '--experts', '16', '--top-k', '2', '--workers', '1'];
    const { code, value } = await json(['bench', 'ep', ...sizes, '--layout', 'expert-major']);
    expect(code).toBe(0);
    const rows = value.rows as { layout: string; operation: string; formulaBytes: number; ofBound: number }[];
    expect(rows.map(({ layout, operation }) => `${layout} ${operation}`)).toEqual([
      'expert-major dispatch',
      'expert-major combine',
    ]);
    for (const { formulaBytes, ofBound } of rows) {
      expect(formulaBytes % 1024).toBe(0);
      expect(ofBound).toBeGreaterThan(0);
    }
    expect(value).toMatchObject({ backend: 'embedded', step: { tokens: 1, stepsPerGraph: 100 } });
  });

  it('measures against the copy ceiling', async () => {
    const { code, value } = await json([
      'bench',
      'm2n',
      '--ranks',
      '4',
      '--bytes',
      '16MiB',
      '--workers',
      '1',
    ]);
    expect(code).toBe(0);
    expect(value).toMatchObject({ backend: 'embedded' });
    const rows = value.rows as { ofBound: number; bytes: number }[];
    expect(rows).toHaveLength(4);
    for (const { ofBound, bytes } of rows) {
      expect(ofBound).toBeGreaterThan(0);
      expect(bytes).toBeGreaterThan(2 ** 23);
    }
    expect(value.stepsPerGraph).toBe(100);
    const steps = value.steps as { bytes: number; enqueueMs: number }[];
    expect(steps.map((step) => step.bytes)).toEqual([2 ** 20, 8]);
    for (const { enqueueMs } of steps) expect(enqueueMs).toBeGreaterThan(0);
  });
});

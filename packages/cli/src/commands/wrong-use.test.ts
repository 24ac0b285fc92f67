// SPDX-License-Identifier: Apache-2.0
// Wrong use is exit code 2, with what is wrong and what to do, on stderr or as one JSON object.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkpoint, folder, json, run, useFolder } from './shell.test-util.js';

useFolder();

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
    [['--model', 'Qwen3-0.6B'], '--model is for --from and --to;'],
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

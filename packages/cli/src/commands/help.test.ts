// SPDX-License-Identifier: Apache-2.0
// Every command has help with usage, options and examples, fit for a terminal.

import { describe, expect, it } from 'vitest';
import { run, useFolder } from './shell.test-util.js';

useFolder();

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

// SPDX-License-Identifier: Apache-2.0
// `plan m2n` plans thousands of ranks, and writes the plan and its pictures whole.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkpoint, folder, json, run, useFolder } from './shell.test-util.js';

useFolder();

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

  it('writes no plan where there is nothing to draw', async () => {
    const [output, svg] = ['undrawn.json', 'undrawn.svg'];
    const sides = ['--checkpoint', checkpoint, '--from', 'tp=2', '--to', 'tp=2'];
    const files = ['--output', output, '--svg', svg, '--tensor', 'nothing'];
    const { code, stderr } = await run(['plan', 'm2n', ...sides, ...files]);
    expect(code).toBe(2);
    expect(stderr).toContain('has no tensor "nothing"');
    const left = await readdir(folder);
    expect(left).not.toContain(output);
    expect(left).not.toContain(svg);
  });
});

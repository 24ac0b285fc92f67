// SPDX-License-Identifier: Apache-2.0
// `plan ep` plans a routing that is made up or recorded, and names the configuration that is wrong.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { folder, json, run, start, useFolder } from './shell.test-util.js';

useFolder();

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

  it('ends on SIGTERM while it makes up a routing that takes minutes', async () => {
    const child = start(['plan', 'ep', '--ranks', '4096', '--tokens', '4096']);
    const ended = new Promise((resolve) => child.on('close', resolve));
    try {
      // Time to start and to be in the midst of it.
      await setTimeout(2000);
      child.kill('SIGTERM');
      expect(await Promise.race([ended, setTimeout(10_000, 'goes on')])).toBe(143);
    } finally {
      child.kill('SIGKILL');
    }
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

  it('refuses a list in place of a configuration', async () => {
    const file = join(folder, 'list.json');
    await writeFile(file, '[]');
    const { code, stderr } = await run(['plan', 'ep', '--config', file]);
    expect(code).toBe(2);
    expect(stderr).toContain(`--config ${file} must hold a JSON object.`);
  });

  it('says who goes to an expert that there is not, and whose top-k a trace contradicts', async () => {
    const [trace, config] = [join(folder, 'far.json'), join(folder, 'top-k.json')];
    await writeFile(trace, '{"topkIdx": [[[0, 1]], [[2, 1], [3, 300]]]}');
    await writeFile(config, '{"topK": 3}');
    const far = await run(['plan', 'ep', '--trace', trace]);
    expect(far.code).toBe(2);
    expect(far.stderr).toContain(`--trace ${trace}: token 1 of rank 1 goes to expert 300, but there are 256`);
    expect(far.stderr).toContain('--experts');
    const other = await run(['plan', 'ep', '--trace', trace, '--experts', '301', '--config', config]);
    expect(other.code).toBe(2);
    expect(other.stderr).toContain(`--config ${config}: topK is 3, but the trace has 2 ids per token`);
  });

  it('does not blame the file of a configuration for what an option says', async () => {
    const file = join(folder, 'right-ep.json');
    await writeFile(file, JSON.stringify({ hidden: 64 }));
    const { code, value } = await json(['plan', 'ep', '--config', file, '--hidden', '12']);
    expect(code).toBe(2);
    expect(value.error).toMatchObject({ field: 'hidden' });
  });
});

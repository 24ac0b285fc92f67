// SPDX-License-Identifier: Apache-2.0
// A script runs once per rank, is told who it is, and its lines come out whole and marked.

import { describe, expect, it } from 'vitest';
import { run, sortedLines, useScripts } from './run-command.test-util.js';

useScripts();

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

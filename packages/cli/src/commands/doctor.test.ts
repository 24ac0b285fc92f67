// SPDX-License-Identifier: Apache-2.0
// `doctor` says whether this machine is usable, and gives a fix for what is not.

import { describe, expect, it } from 'vitest';
import { json, run, useFolder } from './shell.test-util.js';

useFolder();

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

// SPDX-License-Identifier: Apache-2.0
// Doctor shows every option with its origin, and one that is wrong does not hide the others.

import { expect, it } from 'vitest';
import { optionChecks } from './option-checks.js';

it('says that nothing is set', () => {
  const { checks, options, backend } = optionChecks({ PATH: '/bin' });
  expect(checks).toEqual([{ name: 'Options', status: 'ok', found: 'all have their defaults' }]);
  expect(options.every(({ origin }) => origin === 'default')).toBe(true);
  expect(backend).toBe('auto');
});

it('names what the environment sets', () => {
  const { checks, options, backend } = optionChecks({ NCCL_EXT_BACKEND: 'embedded', NCCL_EXT_WORKERS: '2' });
  expect(backend).toBe('embedded');
  expect(checks).toEqual([
    { name: 'Options', status: 'ok', found: 'NCCL_EXT_BACKEND, NCCL_EXT_WORKERS set' },
  ]);
  expect(options.find(({ option }) => option === 'workers')).toEqual({
    option: 'workers',
    variable: 'NCCL_EXT_WORKERS',
    value: 2,
    origin: 'environment',
  });
});

it('does not show a secret, right or wrong', () => {
  const right = optionChecks({ NCCL_EXT_TOKEN: 'hunter2' });
  expect(right.options.find(({ option }) => option === 'token')).toMatchObject({
    value: 'set, not shown',
    origin: 'environment',
  });
  expect(optionChecks({}).options.find(({ option }) => option === 'token')).toMatchObject({ value: null });
  const wrong = optionChecks({ NCCL_EXT_TOKEN: 'hunter2'.repeat(100) });
  expect(wrong.checks).toMatchObject([{ name: 'NCCL_EXT_TOKEN', status: 'failed' }]);
  expect(JSON.stringify([right, wrong])).not.toContain('hunter2');
});

it('fails a wrong value with what is allowed, and warns of a misspelt name', () => {
  const { checks, backend } = optionChecks({
    NCCL_EXT_BACKEND: 'gpu',
    NCCL_EXT_WORKER: '2',
    NCCL_EXT_COLOUR: 'x',
  });
  expect(backend).toBe('auto');
  expect(checks).toEqual([
    {
      name: 'NCCL_EXT_BACKEND',
      status: 'failed',
      found: 'is "gpu"',
      fix: 'Set it to one of auto, embedded, cuda, cuda12, cuda13, or unset it.',
    },
    expect.objectContaining({ name: 'NCCL_EXT_COLOUR', status: 'warning' }),
    {
      name: 'NCCL_EXT_WORKER',
      status: 'warning',
      found: 'is no option and has no effect',
      fix: 'Did you mean NCCL_EXT_WORKERS?',
    },
  ]);
});

// SPDX-License-Identifier: Apache-2.0
// Errors can be recognised across two copies of the package, and carry what a program needs.

import { describe, expect, it, vi } from 'vitest';
import { NcclExtError } from './nccl-ext-error.js';

describe('NcclExtError', () => {
  it('carries code, fields, cause, and the help below its message', () => {
    const cause = new Error('below');
    const error = new NcclExtError('ERR_TIMEOUT', 'Rank 3 did not come.', {
      peer: 3,
      help: 'Look at rank 3.',
      cause,
    });
    expect(error).toMatchObject({ name: 'NcclExtError', code: 'ERR_TIMEOUT', peer: 3, cause });
    expect(error.message).toBe('Rank 3 did not come.\nLook at rank 3.');
  });

  it('lists only what is known in JSON', () => {
    const json = new NcclExtError('ERR_BUSY', 'in use', { rank: 0 }).toJSON();
    expect(json).toEqual({ name: 'NcclExtError', code: 'ERR_BUSY', message: 'in use', rank: 0 });
  });

  it('writes bigints as digits, which JSON can hold', () => {
    const error = new NcclExtError('ERR_VERIFY', 'differs', { expected: 2n ** 64n - 1n, seen: 3n });
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ expected: '18446744073709551615', seen: '3' });
  });

  it('is recognised when it comes from another copy of the package', async () => {
    const error = new NcclExtError('ERR_BUSY', 'in use');
    vi.resetModules();
    const copy = await import('./nccl-ext-error.js');
    expect(copy.NcclExtError).not.toBe(NcclExtError);
    expect(copy.NcclExtError.is(error, 'ERR_BUSY')).toBe(true);
  });

  it('is told apart from other errors and other codes', () => {
    expect(NcclExtError.is(new Error('no'))).toBe(false);
    expect(NcclExtError.is(undefined)).toBe(false);
    expect(NcclExtError.is(new NcclExtError('ERR_BUSY', 'x'), 'ERR_TIMEOUT')).toBe(false);
  });
});

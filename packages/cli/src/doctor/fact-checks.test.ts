// SPDX-License-Identifier: Apache-2.0
// Facts of a communicator are shown, and those that are in somebody's way say their fix.

import { describe, expect, it } from 'vitest';
import { factChecks } from './fact-checks.js';

const good = { lsaTeams: '1', deviceApi: 'yes', windows: 'yes', multicast: 'yes', gin: 'gdaki (the GPU)' };

describe('factChecks', () => {
  it('shows a full communicator line by line', () => {
    expect(factChecks(good).map(({ name, status, found }) => [name, status, found])).toEqual([
      ['LSA teams', 'ok', '1'],
      ['Device API', 'ok', 'yes'],
      ['Windows', 'ok', 'yes'],
      ['Multicast', 'ok', 'yes'],
      ['GIN', 'ok', 'gdaki (the GPU)'],
    ]);
  });

  it.each([
    ['lsaTeams', '2', 'warning', 'GPU peers'],
    ['deviceApi', 'no', 'warning', 'NCCL_CUMEM_ENABLE'],
    ['windows', 'no', 'warning', 'Device API'],
    ['multicast', 'no', 'absent', 'NVSwitch'],
    ['gin', 'none', 'absent', 'RDMA'],
  ])('%s %s is %s, with a fix', (key, value, status, hint) => {
    const [check] = factChecks({ [key]: value });
    expect(check).toMatchObject({ status, fix: expect.stringContaining(hint) });
    expect(check!.found.startsWith(`${value}: `)).toBe(true);
  });

  it('shows what it does not know under its own name', () => {
    expect(factChecks({ newThing: 'x' })).toEqual([{ name: 'newThing', status: 'ok', found: 'x' }]);
  });
});

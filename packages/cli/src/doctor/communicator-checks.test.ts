// SPDX-License-Identifier: Apache-2.0
// A world is really made, and one that cannot be made is a line with its fix.

import { describe, expect, it } from 'vitest';
import { communicatorChecks } from './communicator-checks.js';

describe('communicatorChecks', () => {
  it('has at least two ranks, which pass a barrier, and gives what their communicator tells', async () => {
    const { checks, facts } = await communicatorChecks('embedded', 1);
    expect(checks[0]).toEqual({
      name: 'World of 2 ranks',
      status: 'ok',
      found: expect.stringContaining('passed a barrier'),
    });
    expect(checks.slice(1).map(({ name, found }) => [name, found])).toEqual(Object.entries(facts));
  });

  it('fails with the fix where there is no backend', async () => {
    const { checks, facts } = await communicatorChecks('cuda', 4);
    expect(checks).toEqual([
      { name: 'World of 4 ranks', status: 'failed', found: expect.any(String), fix: expect.any(String) },
    ]);
    expect(facts).toEqual({});
  });
});

// SPDX-License-Identifier: Apache-2.0
// One copy enters a domain, by the rail of its receiver, and the members forward it to each other.

import { describe, expect, it } from 'vitest';
import { planOf } from './plan-of.test-util.js';
import { checked, cluster } from './simulate-plan.test-util.js';

describe('createPlan', () => {
  it('lets one copy enter a domain, shared by its members, who forward it', () => {
    const plan = checked(
      planOf([512, 1024], [{ dp: 2 }, {}], [{ dp: 4 }, {}, 4], { topology: cluster(8, 4, 4) }),
    );
    expect(plan.totals.interDomainBytes).toBe(512 * 1024);
    expect(plan.totals.forwardedBytes).toBe(3 * 512 * 1024);
    for (let rank = 4; rank < 8; rank++) {
      const { sends, forwardPeers } = plan.program(rank);
      expect(forwardPeers.length).toBe(3);
      expect(sends.inner.reduce((sum, bytes) => sum + bytes, 0)).toBe((3 * 512 * 1024) / 4);
    }
  });

  it('keeps to the rail of the receiver when that is balanced', () => {
    const plan = checked(
      planOf([512, 1024], [{ dp: 4 }, {}], [{ dp: 4 }, {}, 4], { topology: cluster(8, 4, 4) }),
    );
    expect(plan.totals.bytesByLink.rail).toBe(512 * 1024);
    expect(plan.totals.bytesByLink.network).toBe(0);
  });

  it('gives small cells of a class to the members of a domain in turn', () => {
    const names = Array.from({ length: 8 }, (_, i) => `norm${i}`);
    const plan = checked(
      planOf([64], [{ dp: 1 }, {}], [{ dp: 4 }, {}, 4], { topology: cluster(8, 4, 4), names }),
    );
    for (let rank = 4; rank < 8; rank++) expect(plan.program(rank).sends.length).toBe(6);
  });
});

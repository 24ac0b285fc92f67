// SPDX-License-Identifier: Apache-2.0
// Options of handles and layers that do not exist are refused, and nothing is made.

import { describe, expect, it } from 'vitest';
import { EpGroup } from '../group/ep-group.js';
import { claimNothing, fakeCore } from '../group/fake-core.test-util.js';
import { comm, config, useWorld } from './fake-handle.test-util.js';

useWorld();

describe('refuses before anything is enqueued', () => {
  it('options of handles that do not exist', () => {
    const group = new EpGroup(fakeCore(comm, config).core, claimNothing());
    for (const [message, options] of [
      ['aligment is unknown in the options of a handle; did you mean alignment?', { aligment: 8 }],
      ['hnadle is unknown in memory; did you mean handle?', { memory: { hnadle: () => comm.allocate(1) } }],
    ] as const)
      expect(() => group.createHandle({ layout: 'packed', ...options } as never)).toThrow(message);
    expect(() => group.layer({ layout: 'flat', experts: {} as never })).toThrow(/experts.enqueue must be/);
    expect(group.memory().handles).toBe(0);
  });
});

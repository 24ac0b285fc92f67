// SPDX-License-Identifier: Apache-2.0
// Events reach typed and plain subscribers, are not even built without one, and end with the subscription.

import diagnostics from 'node:diagnostics_channel';
import { describe, expect, it, vi } from 'vitest';
import { publish, subscribe } from './channels.js';

describe('publish', () => {
  it('does not build an event that nobody wants', () => {
    const build = vi.fn(() => ({ bytes: 1, totalBytes: 2 }));
    publish('refit.progress', build);
    expect(build).not.toHaveBeenCalled();
  });

  it('reaches every subscriber until it unsubscribes', () => {
    const first: unknown[] = [];
    const second: unknown[] = [];
    const stopFirst = subscribe('refit.progress', (event) => first.push(event));
    const stopSecond = subscribe('refit.progress', (event) => second.push(event));
    publish('refit.progress', () => ({ bytes: 1, totalBytes: 2 }));
    stopFirst();
    publish('refit.progress', () => ({ bytes: 2, totalBytes: 2 }));
    stopSecond();
    publish('refit.progress', () => ({ bytes: 3, totalBytes: 2 }));
    expect(first).toEqual([{ bytes: 1, totalBytes: 2 }]);
    expect(second).toEqual([
      { bytes: 1, totalBytes: 2 },
      { bytes: 2, totalBytes: 2 },
    ]);
  });

  it('uses the documented channel names', () => {
    const seen: unknown[] = [];
    const listener = (message: unknown, name: string | symbol) => seen.push([name, message]);
    diagnostics.subscribe('nccl-ext:world.disposed', listener);
    publish('world.disposed', () => ({ backend: 'embedded', localRanks: [0, 1] }));
    diagnostics.unsubscribe('nccl-ext:world.disposed', listener);
    expect(seen).toEqual([['nccl-ext:world.disposed', { backend: 'embedded', localRanks: [0, 1] }]]);
  });
});

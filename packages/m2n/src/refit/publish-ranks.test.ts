// SPDX-License-Identifier: Apache-2.0
// A listener that throws while bytes move fails the refit, and nothing else.

import { expect, it } from 'vitest';
import { ProgressMeter } from './progress-meter.js';
import { publishRanks, type ServingRank } from './publish-ranks.js';

it('rejects with what a listener throws between begin and end of the move', async () => {
  const reason = new Error('no more room on the screen');
  let heard = 0;
  const meter = new ProgressMeter(({ bytes }) => {
    heard++;
    if (bytes > 0) throw reason;
  });
  let writtenBytes = 0;
  const rank = {
    transfer: { progress: { bytesPerExecution: 8, completed: 0, writtenBytes } },
    publication: {
      async publish() {
        Object.assign(rank.transfer.progress, { writtenBytes: ++writtenBytes });
        await new Promise((resolve) => setTimeout(resolve, 350));
        return { agreeMs: 0, pauseMs: 0, moveMs: 0, verifyMs: 0, resumeMs: 0, stallMs: 0 };
      },
    },
  };
  await expect(publishRanks([rank as unknown as ServingRank], 1, meter)).rejects.toBe(reason);
  // Once at the beginning, once when it threw, and never again.
  expect(heard).toBe(2);
});

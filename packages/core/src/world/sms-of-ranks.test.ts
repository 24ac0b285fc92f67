// SPDX-License-Identifier: Apache-2.0
// One number serves all ranks, a list must have an entry for each.

import { expect, it } from 'vitest';
import { smsOfRanks } from './sms-of-ranks.js';

it('gives every rank the one number, or its entry of the list', () => {
  expect(smsOfRanks(0, 2)).toEqual([0, 0]);
  expect(smsOfRanks(28, 3)).toEqual([28, 28, 28]);
  expect(smsOfRanks([28, 0, 4], 3)).toEqual([28, 0, 4]);
});

it.each([[[]], [[28]], [[28, 4, 4]]])('refuses %j for two ranks', (sms) => {
  expect(() => smsOfRanks(sms, 2)).toThrowError(
    expect.objectContaining({
      code: 'ERR_INVALID_ARGUMENT',
      message: expect.stringContaining(`one number of SMs per rank (2), not [${sms.join(', ')}].`),
      field: 'sms',
      expected: 2,
      seen: sms.length,
    }),
  );
});

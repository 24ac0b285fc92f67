// SPDX-License-Identifier: Apache-2.0
// Suggestions for misspelt names, and none for unrelated ones.

import { expect, it } from 'vitest';
import { nearestName } from './nearest-name.js';

const names = ['backend', 'timeoutMs', 'workers'];

it.each([
  ['backend', 'backend'],
  ['bakend', 'backend'],
  ['timeoutms', 'timeoutMs'],
  ['timeout', 'timeoutMs'],
  ['worker', 'workers'],
  ['wokrer', 'workers'],
  ['owrkers', 'workers'],
  ['wrokesr', 'workers'],
  ['ranks', undefined],
  ['', undefined],
])('%s is %s', (name, expected) => {
  expect(nearestName(name, names)).toBe(expected);
});

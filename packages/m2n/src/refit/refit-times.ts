// SPDX-License-Identifier: Apache-2.0
// Sums up times: over ranks the slowest counts, over repeats the median.

import type { PublishTimes } from '../publish/publish-times.js';
import type { RefitTimes } from './refit-result.js';

const publishSteps = ['agreeMs', 'pauseMs', 'moveMs', 'verifyMs', 'resumeMs', 'stallMs'] as const;

/**
 * Each step on the rank where it took longest. Ranks that moved their bytes sooner wait for the others in `verify`: there the shortest
 * counts, which is what the step itself took.
 */
export function slowest(ranks: readonly PublishTimes[]): PublishTimes {
  return collect(publishSteps, (step) => {
    const times = ranks.map((rank) => rank[step]);
    return step === 'verifyMs' ? Math.min(...times) : Math.max(...times);
  });
}

/** Each step's median; of an even number the upper one. */
export function medians(repeats: readonly RefitTimes[]): RefitTimes {
  return collect([...publishSteps, 'checkMs'], (step) => {
    const sorted = repeats.map((times) => times[step]).sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)]!;
  });
}

function collect<K extends string>(keys: readonly K[], timeOf: (key: K) => number): Record<K, number> {
  return Object.fromEntries(keys.map((key) => [key, timeOf(key)])) as Record<K, number>;
}

// SPDX-License-Identifier: Apache-2.0
// Cases start from a small group and change what they are about.

import type { GroupName } from '../../cases/groups.js';
import type { EpCase, HandleSpec, RoutingSpec } from './ep-case.js';

/** Each layout once. */
export const everyLayout: readonly HandleSpec[] = [
  { layout: 'expert-major' },
  { layout: 'rank-major' },
  { layout: 'flat' },
  { layout: 'packed', alignment: 4 },
];

export const highThroughput: readonly HandleSpec[] = everyLayout.slice(2);
export const lowLatency: readonly HandleSpec[] = everyLayout.slice(0, 2);

/** Everybody routes everywhere. */
export const uniform: RoutingSpec = { ids: 'uniform', holes: 10 };

/** Different numbers of tokens, none on some ranks. */
export const ragged: RoutingSpec = { ids: 'uniform', holes: 10, tokens: 'ragged' };

export const smallConfig: EpCase['config'] = {
  experts: 8,
  topK: 2,
  hidden: 16,
  dtype: 'bf16',
  maxTokensPerRank: 6,
};

/** A case of 4 ranks with one step for each layout, apart from what `change` says. */
export function epCase(
  group: GroupName,
  what: string,
  change: Partial<Omit<EpCase, 'kind' | 'name' | 'group' | 'config'>> & {
    readonly config?: Partial<EpCase['config']>;
  } = {},
): EpCase {
  const { config, ...rest } = change;
  return {
    kind: 'ep',
    name: `${group}/${what}`,
    group,
    ranks: 4,
    handles: everyLayout,
    routings: [uniform],
    ...rest,
    config: { ...smallConfig, ...config },
  };
}

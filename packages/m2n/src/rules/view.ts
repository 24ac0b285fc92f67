// SPDX-License-Identifier: Apache-2.0
// Finds under which storage names a side keeps a parameter, and which other parameters share its storage.

import { closestOf } from '../model/model-error.js';
import type { RuleSet, ViewEntry } from './rule-set.js';
import { rulesError } from './rules-error.js';

/** Where a view puts a parameter; all names are templates. */
export interface ViewMatch {
  /** The parameters that the storage joins, in their order; the parameter alone when it is renamed or split. */
  readonly members: readonly string[];
  /** Position of the parameter among the members. */
  readonly position: number;
  /** One storage, or one per segment of a parameter that is split. */
  readonly storages: readonly string[];
  /** The storage has the local experts as its first dimension. */
  readonly stacked: boolean;
}

/** The view in which every parameter has a storage of its own name. */
export const checkpointView = 'checkpoint';

/** @throws ERR_RULES when the rules have no view of this name. */
export function viewOf(rules: RuleSet, name: string): readonly ViewEntry[] {
  if (name === checkpointView) return [];
  const views = rules.views ?? {};
  if (Object.hasOwn(views, name)) return views[name]!;
  const known = [checkpointView, ...Object.keys(views)];
  throw rulesError(
    `rules ${rules.name} have no view ${JSON.stringify(name)}; the closest is ${closestOf(name, known)}`,
    {
      field: 'view',
    },
  );
}

/** The first entry that names the parameter, or undefined when it keeps its name. */
export function matchView(view: readonly ViewEntry[], template: string): ViewMatch | undefined {
  for (const { from, into } of view) {
    for (const [position, pattern] of from.entries()) {
      const tail = tailOf(pattern, template);
      if (tail === undefined) continue;
      const fill = (name: string): string => (name.endsWith('*') ? name.slice(0, -1) + tail : name);
      const storages = into.map(fill);
      const stacked = template.includes('{expert}') && !storages[0]!.includes('{expert}');
      return { members: from.map(fill), position, storages, stacked };
    }
  }
  return undefined;
}

/** What a `*` at the end of the pattern stands for; empty without one; undefined when the pattern does not match. */
function tailOf(pattern: string, template: string): string | undefined {
  if (!pattern.endsWith('*')) return pattern === template ? '' : undefined;
  const front = pattern.slice(0, -1);
  return template.startsWith(front) ? template.slice(front.length) : undefined;
}

/** A template with the numbers of a parameter in it. */
export function fillTemplate(
  template: string,
  layer: number | undefined,
  expert: number | undefined,
): string {
  return template.replace('{layer}', String(layer)).replace('{expert}', String(expert));
}

/** {@link fillTemplate} for many parameters: what does not depend on the expert is made once per layer. */
export function templateFiller(
  template: string,
): (layer: number | undefined, expert: number | undefined) => string {
  const byLayer = new Map<number | undefined, readonly string[]>();
  return (layer, expert) => {
    let pieces = byLayer.get(layer);
    if (pieces === undefined) {
      pieces = template.replace('{layer}', String(layer)).split('{expert}');
      byLayer.set(layer, pieces);
    }
    return pieces.length === 1 ? pieces[0]! : pieces[0]! + expert + pieces[1]!;
  };
}

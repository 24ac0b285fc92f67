// SPDX-License-Identifier: Apache-2.0
// Which rows a rank receives, written out from the rules of each layout.

import type { EpLayout } from '@nccl-ext/core/contract';
import { chooseReplica } from '../config/choose-replica.js';
import type { ExpertMap } from '../config/expert-map.js';
import type { Batch } from './batches.test-util.js';

/** One entry of a token that is routed to this rank. */
export interface Entry {
  readonly k: number;
  readonly local: number;
  readonly weight: number;
}

/** A row in the layout's buffer. */
export interface ExpectedRow {
  /** Position among the rows of the buffer, slabs one after the other. */
  readonly at: number;
  readonly source: number;
  readonly token: number;
  readonly entries: readonly Entry[];
}

export interface ExpectedRank {
  readonly rows: readonly ExpectedRow[];
  /** Rows per local expert, without padding. */
  readonly perExpert: readonly number[];
  readonly perSource: readonly number[];
  /** First row of each local expert's zone or slab. */
  readonly firstRow: readonly number[];
  /** Rows, padding included. */
  readonly total: number;
}

/** What `rank` receives in `layout` of `batches`. */
export function expectedRows(
  map: ExpertMap,
  layout: EpLayout,
  batches: readonly Batch[],
  rank: number,
  { most, alignment = 1 }: { readonly most: number; readonly alignment?: number },
): ExpectedRank {
  const local = map.placement[rank]!.length;
  const tokens = batches.flatMap((batch, source) =>
    batch.ids.map((ids, token) => ({
      source,
      token,
      entries: ids.flatMap((id, k): Entry[] => {
        if (id === -1) return [];
        const physical = chooseReplica(map, id, source, token);
        if (map.rankOf[physical] !== rank) return [];
        return [{ k, local: physical - map.firstPhysical[rank]!, weight: batch.weights[token]![k]! }];
      }),
    })),
  );
  const here = tokens.filter(({ entries }) => entries.length > 0);
  const byExpert = layout === 'expert-major' || layout === 'packed';
  const perExpert = Array.from({ length: local }, (_, e) =>
    here.reduce((sum, { entries }) => sum + entries.filter((entry) => entry.local === e).length, 0),
  );
  const perSource = batches.map((_, s) =>
    here.reduce((sum, row) => sum + (row.source !== s ? 0 : byExpert ? row.entries.length : 1), 0),
  );
  const padded = perExpert.map((n) => Math.ceil(n / alignment) * alignment);
  const firstRow = perExpert.map((_, e) =>
    layout === 'expert-major' ? e * batches.length * most : padded.slice(0, e).reduce((sum, n) => sum + n, 0),
  );
  const next = [...firstRow];
  const nextOfSource = batches.map((_, s) => s * most);
  const rows = here.flatMap((row, index): ExpectedRow[] => {
    if (byExpert) return row.entries.map((entry) => ({ ...row, at: next[entry.local]!++, entries: [entry] }));
    return [{ ...row, at: layout === 'flat' ? index : nextOfSource[row.source]!++ }];
  });
  const total = layout === 'packed' ? padded.reduce((sum, n) => sum + n, 0) : rows.length;
  return { rows, perExpert, perSource, firstRow, total };
}

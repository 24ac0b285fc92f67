// SPDX-License-Identifier: Apache-2.0
// Keeps the memory of groups and handles apart from each other and from tensors: whoever writes there would change calls in flight.

import type { ErrorRecord } from '../../contract/index.js';
import { errorRecord } from '../host/errors.js';
import type { BufferState, RankState } from '../host/objects.js';

/** ERR_OVERLAP when a group or a handle of the rank has some of these bytes. */
export function overlapsReserved(
  rank: RankState,
  op: string,
  name: string,
  buffer: BufferState,
  byteOffset: number,
  bytes: number,
): ErrorRecord | undefined {
  // Nothing of expert parallelism lies in most buffers.
  if (buffer.groups === 0 || bytes === 0) return undefined;
  for (const object of rank.objects) {
    if (object.kind !== 'epGroup' && object.kind !== 'epHandle') continue;
    if (object.memory !== buffer) continue;
    const first = object.config.memory.byteOffset;
    const end = first + (object.kind === 'epGroup' ? object.config.layout : object.config.sections).bytes;
    if (byteOffset + bytes <= first || end <= byteOffset) continue;
    const owner = object.kind === 'epGroup' ? 'a group' : 'a handle';
    return errorRecord(
      'ERR_OVERLAP',
      op,
      `${name} of ${op} lies in memory that ${owner} keeps its state in`,
      {
        rank: rank.rank,
        help: 'Give groups, handles and tensors memory of their own.',
      },
    );
  }
  return undefined;
}

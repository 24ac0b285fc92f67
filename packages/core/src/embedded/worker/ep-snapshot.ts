// SPDX-License-Identifier: Apache-2.0
// Takes a snapshot of a rank's top-k ids: checks them, and chooses the replica that each token goes to.

import { errorNumbers } from '../../errors/codes.js';
import { callWord, handleStates } from '../ep/ep-words.js';
import { type EpGroup, floatsAt, intsAt, type LiveReplicas } from './ep-group.js';
import { condemn, countsOf, type Ep, setState } from './ep-state.js';

/** Writes the physical experts of all tokens, and the handle's state; bad ids leave it refused. */
export function takeSnapshot(ep: Ep): void {
  const { call, group, spaces, rank } = ep;
  const tokens = call[callWord.tokens]!;
  const counts = countsOf(ep);
  setState(counts, 'state', handleStates.indexOf('none'));
  setState(counts, 'tokens', tokens);
  setState(counts, 'epoch', ep.epoch);
  const experts = intsAt(spaces, call[callWord.experts]!, tokens * group.topK);
  const bad = tokens === 0 ? undefined : mapIds(ep, experts, liveReplicas(ep), rank);
  if (bad !== undefined) {
    setState(counts, 'state', handleStates.indexOf('refused'));
    setState(counts, 'token', bad.token);
    setState(counts, 'position', bad.position);
    setState(counts, 'id', bad.id);
    condemn(ep, errorNumbers.ERR_ROUTING, bad.token, bad.position, bad.id);
    return;
  }
  const weights = call[callWord.topkWeights]!;
  if (weights !== 0 && tokens > 0)
    floatsAt(spaces, call[callWord.weights]!, experts.length).set(floatsAt(spaces, weights, experts.length));
  setState(counts, 'state', handleStates.indexOf('routed'));
}

/** Beyond it a number is not exact; such an id is reported as this one. */
const largestId = Number.MAX_SAFE_INTEGER;

interface BadId {
  readonly token: number;
  readonly position: number;
  readonly id: number;
}

function mapIds(ep: Ep, experts: Int32Array, live: LiveReplicas, source: number): BadId | undefined {
  const { call, group } = ep;
  const { topK } = group;
  const words = call[callWord.topkIdx.bytes]! / 4;
  const ids = intsAt(ep.spaces, call[callWord.topkIdx.address]!, experts.length * words);
  for (let at = 0; at < experts.length; at++) {
    const token = Math.floor(at / topK);
    if (at % topK === 0) group.stamp++;
    const id = words === 1 ? ids[at]! : ids[at * 2 + 1]! * 2 ** 32 + (ids[at * 2]! >>> 0);
    if (id === -1) {
      experts[at] = -1;
      continue;
    }
    if (id < 0 || id >= group.experts || group.stamps[id] === group.stamp)
      return { token, position: at % topK, id: Math.max(-largestId, Math.min(id, largestId)) };
    group.stamps[id] = group.stamp;
    experts[at] = replicaOf(group, live, id, source, token);
  }
  return undefined;
}

/** -1 when no replica is on a member. */
function replicaOf(group: EpGroup, live: LiveReplicas, id: number, source: number, token: number): number {
  const first = live.start[id]!;
  const count = live.start[id + 1]! - first;
  if (count === 0) return -1;
  if (group.replicaRule === 1) {
    for (let i = 0; i < count; i++) {
      const physical = live.physical[first + i]!;
      if (group.rankOf[physical] === source) return physical;
    }
  }
  return live.physical[first + ((source + token) % count)]!;
}

/** Of the operation's epoch: the group's may have changed since the operation was let in. */
function liveReplicas({ group, epoch }: Ep): LiveReplicas {
  if (group.live?.epoch === epoch) return group.live;
  const start = new Int32Array(group.experts + 1);
  const physical: number[] = [];
  for (let id = 0; id < group.experts; id++) {
    for (let i = group.replicaStart[id]!; i < group.replicaStart[id + 1]!; i++) {
      const replica = group.replicas[i]!;
      if (group.active[group.rankOf[replica]!] === 1) physical.push(replica);
    }
    start[id + 1] = physical.length;
  }
  group.live = { epoch, start, physical: Int32Array.from(physical) };
  return group.live;
}

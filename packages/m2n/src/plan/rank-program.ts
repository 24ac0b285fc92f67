// SPDX-License-Identifier: Apache-2.0
// Writes down what one rank does in a transfer: its moves, and which ranks it must hear from.

import type { TransferProgram } from '@nccl-ext/core/contract';
import type { ProgramOptions } from './executable-plan.js';
import type { Flow } from './flow.js';
import { flowsFrom } from './flows-from.js';
import { flowsTo } from './flows-to.js';
import type { MoveShape } from './move-shape.js';
import { MoveTableBuilder } from './move-table.js';
import { type PlanClass, type PlanContext, transformOf } from './plan-class.js';

/** The program of a rank; empty for ranks on neither side. */
export function rankProgram(
  context: PlanContext,
  classes: readonly PlanClass[],
  world: { readonly rank: number; readonly size: number; readonly digest: string },
  { receives = false }: ProgramOptions,
): TransferProgram {
  const { rank, size, digest } = world;
  const sends = new MoveTableBuilder();
  const arrivals = receives ? new MoveTableBuilder() : undefined;
  const receivePeers = new Set<number>();
  const forwardPeers = new Set<number>();
  for (const cls of classes) {
    if (cls.source.has(rank) || cls.destination.has(rank)) {
      const write = writer(context, cls, sends);
      flowsFrom(context, cls, rank, (flow) => write(flow, rank, flow.peer));
    }
    if (!cls.destination.has(rank)) continue;
    const write = arrivals && writer(context, cls, arrivals);
    flowsTo(context, cls, rank, (flow) => {
      if (flow.peer !== rank) (flow.stage === 0 ? receivePeers : forwardPeers).add(flow.peer);
      write?.(flow, flow.peer, rank);
    });
  }
  return {
    rank,
    size,
    digest,
    sends: sends.build(),
    receives: arrivals?.build(),
    receivePeers: Int32Array.from(receivePeers).sort(),
    forwardPeers: Int32Array.from(forwardPeers).sort(),
  };
}

/** Flows of one class as moves: per tensor, the cells it has whole, and a piece of one where the flow starts or ends inside. */
function writer(
  context: PlanContext,
  cls: PlanClass,
  table: MoveTableBuilder,
): (flow: Flow, sender: number, receiver: number) => void {
  const cast = transformOf(cls);
  const { elementBytes } = cls.destination;
  let last: Flow | undefined;
  let shape: MoveShape | undefined;
  return (flow, sender, receiver) => {
    const { stage, peer, a, b, reader, writer, cell, from, to } = flow;
    const known =
      last &&
      last.a === a &&
      last.b === b &&
      last.reader === reader &&
      last.writer === writer &&
      last.stage === stage;
    if (!known || !shape) shape = context.shape(cls, a, b, reader, writer, stage === 1);
    last = flow;
    const readSlot = stage === 0 ? cls.source.slotOf(reader, sender) : cls.destination.slotOf(reader, sender);
    const writeSlot = cls.destination.slotOf(writer, receiver);
    const transform = stage === 0 ? cast : 0;
    const head = { stage, peer, transform, unitBytes: transform === 0 ? elementBytes : 1 };
    for (let i = Math.floor(from / cell); i * cell < to; i++) {
      const entry = cls.entries[i]!;
      const low = Math.max(0, from - i * cell);
      const high = Math.min(cell, to - i * cell);
      const moves = low === 0 && high === cell ? shape.whole() : shape.moves(low, high);
      table.add(head, entry + writeSlot, entry + readSlot, moves);
    }
  };
}

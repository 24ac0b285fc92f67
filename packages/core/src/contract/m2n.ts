// SPDX-License-Identifier: Apache-2.0
// The m2n part of the backend contract: a program of strided moves per rank, prepared once, enqueued many times.
//
// Protocol of one enqueue, for every backend (design, section 2 invariant 6 and section 5):
//  - A rank whose stream reaches the operation grants every rank that sends to it; a sender touches a destination only after
//    that destination's grant for this execution. Grants and arrivals are 64-bit epochs per (transfer, pair), counted on the
//    device, so a captured graph holds no literal epoch.
//  - Stage 0 moves read source tensors. Stage 1 moves forward what arrived in this rank's destination tensors; they start
//    when every stage-0 arrival of this rank is in.
//  - The operation is done on a rank when its own moves are done and everything it receives has arrived.
//  - Executions of one transfer on one rank are serialised, whatever streams they are on.

import type { Outcome, Status } from './outcome.js';
import type { BufferHandle, RankHandle, StreamHandle } from './runtime.js';

export type TransferHandle = number;

/** Outer loops of a move. */
export const moveLoops = 3;

/**
 * Strided moves, structure of arrays, sorted by (stage, peer, tensor). One move copies `inner` units from
 * `sourceOffset` to `destinationOffset` and repeats that over three outer loops (count 1 where unused, outermost first).
 * Offsets and strides are bytes from the first byte of the local tensor; all numbers are integers below 2^53.
 */
export interface MoveTable {
  readonly length: number;
  /** Sends: the rank that receives. Receives: the rank that sends. This rank itself: a local move. */
  readonly peer: Int32Array;
  /** 0 reads a source tensor; 1 reads a destination tensor of the sender (forwarding inside a domain). */
  readonly stage: Uint8Array;
  /** Index of the tensor at the receiver: `destinations` binding there. */
  readonly tensor: Int32Array;
  /**
   * Index of the tensor at the sender: `sources` binding in stage 0, `destinations` binding in stage 1. Differs from `tensor` only
   * where a rank keeps one tensor in several storages (tied weights).
   */
  readonly sourceTensor: Int32Array;
  readonly sourceOffset: Float64Array;
  readonly destinationOffset: Float64Array;
  /** Units per innermost run: bytes when `transform` is 0, else elements. */
  readonly inner: Float64Array;
  /** `moveLoops` entries per move. */
  readonly counts: Float64Array;
  readonly sourceStrides: Float64Array;
  readonly destinationStrides: Float64Array;
  /** 0 copies bytes; else see {@link castTransform}. */
  readonly transform: Uint16Array;
}

/** What one rank executes, free of addresses. */
export interface TransferProgram {
  readonly rank: number;
  readonly size: number;
  /** Hex SHA-256 that names the plan; ranks compare it in `prepareTransfer`. */
  readonly digest: string;
  /** Moves that this rank executes. */
  readonly sends: MoveTable;
  /** The same moves seen by the receiver, in the sender's order within each (stage, peer); present when the transfer verifies. */
  readonly receives: MoveTable | undefined;
  /** Ranks that send to this one in stage 0, ascending, without itself. */
  readonly receivePeers: Int32Array;
  /** Ranks that forward to this one in stage 1, ascending. */
  readonly forwardPeers: Int32Array;
}

/** Where the tensors of a plan live on one rank: entry i belongs to tensor i; buffer 0 means this rank does not hold it. */
export interface TensorBindings {
  readonly buffer: Float64Array;
  readonly byteOffset: Float64Array;
}

export interface PrepareConfig {
  readonly program: TransferProgram;
  readonly sources: TensorBindings;
  readonly destinations: TensorBindings;
  /** Hash every (peer, tensor) at the sender and again where it arrived; a difference is ERR_VERIFY naming peer and tensor. */
  readonly verify: boolean;
  /**
   * SMs that the kernels of this transfer may hold on this rank, at most `smBudget`. 0: copy engines alone, ERR_UNSUPPORTED for what they
   * cannot move. Absent: kernels on `smBudget`, or copy engines where the backend knows them to be as fast. Ranks need not agree. No meaning
   * where ranks have no SMs.
   */
  readonly sms?: number;
  /**
   * How pairs of ranks exchange bytes; equal on all ranks. `auto`: by writing where the sender reaches the receiver's memory, else by
   * sending. `mapped`: by writing, or ERR_UNSUPPORTED. `sendrecv`: by sending. Backends with one memory accept and ignore it.
   */
  readonly path: 'auto' | 'mapped' | 'sendrecv';
}

/** Which way bytes take between this rank and a peer. */
export interface TransferPath {
  /** The other rank; this one itself for local moves, which are listed as sends. */
  readonly peer: number;
  readonly direction: 'send' | 'receive';
  /**
   * `local`: within this rank. `mapped`: the sender's kernel writes at the receiver. `copy-engine`: a copy engine does, as the sender says.
   * `sendrecv`: through staging and NCCL.
   */
  readonly path: 'local' | 'mapped' | 'copy-engine' | 'sendrecv';
  /** Of one execution, as they arrive. */
  readonly bytes: number;
  /** Why the pair takes no better path, and what would help; empty when it takes the best. */
  readonly why: string;
}

export interface TransferProgress {
  /** Bytes written by this rank over all executions so far, local and forwarded ones included; grows while one runs. */
  readonly writtenBytes: number;
  /** Executions that finished without an error. */
  readonly completed: number;
}

export interface M2nSpi {
  /** Collective. Compares digests, exchanges where destinations live, checks bounds, and touches no destination byte. */
  prepareTransfer(rank: RankHandle, config: PrepareConfig): Promise<Outcome<TransferHandle>>;
  enqueueTransfer(transfer: TransferHandle, stream: StreamHandle): Status;
  progressOf(transfer: TransferHandle): TransferProgress;
  /** What this rank sends, then what it receives, by peer; settled when the transfer was prepared. Empty for one that is gone. */
  pathsOf(transfer: TransferHandle): readonly TransferPath[];
  /** Waits until no execution is in flight, then frees it. */
  disposeTransfer(transfer: TransferHandle): Promise<Outcome<void>>;
}

/** `transform` of a move that converts `inner` elements between two dtypes, by their codes. */
export function castTransform(from: number, to: number): number {
  return 1 + from * 32 + to;
}

/** The dtype codes of a converting move, undefined for a plain copy. */
export function castOf(transform: number): { readonly from: number; readonly to: number } | undefined {
  if (transform === 0) return undefined;
  return { from: Math.floor((transform - 1) / 32), to: (transform - 1) % 32 };
}

/** The bytes of `buffer` handles that bind no memory. */
export const unbound: BufferHandle = 0;

// SPDX-License-Identifier: Apache-2.0
// Every way in which nccl-ext refuses or fails, with the number that native code and shared memory use for it.

/**
 * Error codes and their numbers. Numbers are stable: device code and shared records carry them.
 * 0 is success; a new code takes the next free number.
 */
export const errorNumbers = {
  /** A parameter is wrong; the message names it and says what is allowed. */
  ERR_INVALID_ARGUMENT: 1,
  /** The call is not possible in this state (for example `synchronize` during capture). */
  ERR_INVALID_STATE: 2,
  /** The object was disposed. */
  ERR_DISPOSED: 3,
  /** A stream already holds 256 unfinished operations. */
  ERR_QUEUE_FULL: 4,
  /** A rank did not come in time; `peer` names it. */
  ERR_TIMEOUT: 5,
  /** The rank was aborted. */
  ERR_ABORTED: 6,
  /** An earlier timeout or lost peer left this object unusable until it is recovered or made anew. */
  ERR_POISONED: 7,
  /** Ranks hold different values of something that must be equal. */
  ERR_DISAGREEMENT: 8,
  /** Memory could not be allocated; the message has the sizes. */
  ERR_OUT_OF_MEMORY: 9,
  /** The backend cannot do this. */
  ERR_UNSUPPORTED: 10,
  /** More elements than a typed array can hold (2^32). */
  ERR_VIEW_TOO_LARGE: 11,
  /** A typed value of another owner: stream, buffer or window of another communicator. */
  ERR_FOREIGN_OBJECT: 12,
  /** A range lies outside its buffer. */
  ERR_OUT_OF_BOUNDS: 13,
  /** Two ranges that must be apart overlap. */
  ERR_OVERLAP: 14,
  /** A rank stopped or left. */
  ERR_RANK_LOST: 15,
  /** Something inside a backend failed (a worker died); the cause is attached. */
  ERR_INTERNAL: 16,
  /** The object is still in use by work that has not finished. */
  ERR_BUSY: 17,
  /** A function that a stream called on the host threw or rejected; `cause` is what it threw. */
  ERR_HOST_CALL: 18,

  ERR_BACKEND_CONFLICT: 32,
  ERR_BACKEND_MISSING: 33,
  ERR_BACKEND_VERSION: 34,
  ERR_BACKEND_LOAD: 35,
  ERR_DRIVER_TOO_OLD: 36,
  ERR_DRIVER_MISSING: 37,
  ERR_NCCL_NOT_FOUND: 38,
  ERR_NCCL_VERSION: 39,
  /** Launcher variables are missing, incomplete or contradict each other. */
  ERR_LAUNCHER: 40,
  /** The embedded backend was asked to span processes. */
  ERR_SINGLE_PROCESS: 41,
  /** A module of kernels cannot be loaded on this GPU, or a launch does not fit its kernel. */
  ERR_MODULE: 42,
  /** A kernel of the user's reported a failure of its own; `expected` and `seen` hold what it said. */
  ERR_KERNEL: 43,

  /** A mesh is malformed. */
  ERR_MESH: 64,
  /** A placement or layout is malformed or does not fit its shape. */
  ERR_LAYOUT: 65,
  /** A topology is malformed or does not describe these ranks. */
  ERR_TOPOLOGY: 66,
  /** Source and destination describe different global tensors. */
  ERR_SHAPE_MISMATCH: 67,
  /** A destination element has no source, or a source box claims what another one has. */
  ERR_COVERAGE: 68,
  /** A conversion between these dtypes is not defined. */
  ERR_CAST: 69,
  /** A manifest document is malformed. */
  ERR_MANIFEST: 70,
  /** A checkpoint or its header is malformed. */
  ERR_CHECKPOINT: 71,
  /** A model description is malformed or unknown. */
  ERR_MODEL: 72,
  /** Parallel sizes do not fit; the message shows the arithmetic. */
  ERR_PARALLELISM: 73,
  /** A rule set is malformed or leaves a parameter without a rule. */
  ERR_RULES: 74,
  /** Bytes that arrived differ from the bytes that were sent. */
  ERR_VERIFY: 75,
  /** A destination holds part of a new version; only a complete resend leads back. */
  ERR_TORN: 76,

  /** Top-k ids are out of range or repeated in a token. */
  ERR_ROUTING: 96,
  /** More rows than the receive budget or the output buffer holds; `seen` is the exact demand. */
  ERR_OVERFLOW: 97,
  /** No context is free for another unfinished operation or graph. */
  ERR_CONTEXTS: 98,
  /** The rank is not a member of the group, or the group waits for an agreement on its members. */
  ERR_MEMBERSHIP: 99,
} as const;

/** The code of an {@link NcclExtError}. */
export type ErrorCode = keyof typeof errorNumbers;

const codesByNumber = new Map<number, ErrorCode>(
  Object.entries(errorNumbers).map(([code, value]) => [value, code as ErrorCode]),
);

/** The code with this number; unknown numbers read as ERR_INTERNAL. */
export function errorCodeOf(value: number): ErrorCode {
  return codesByNumber.get(value) ?? 'ERR_INTERNAL';
}

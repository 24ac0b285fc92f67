// SPDX-License-Identifier: Apache-2.0
// The one list of options. Resolution, warnings about unknown variables and docs/options.md are made from it.

import { type LogLevel, logLevels } from '../observe/logger.js';
import { integer, type OptionKind, oneOf, perRank, text } from './option-kind.js';

/** What `backend` may be. */
export type BackendChoice = 'auto' | 'embedded' | 'cuda' | 'cuda12' | 'cuda13';

/** How ranks of a transfer exchange bytes. */
export type TransferPathChoice = 'auto' | 'mapped' | 'sendrecv';

/** All options; docs/options.md describes them. */
export interface Options {
  readonly backend: BackendChoice;
  readonly timeoutMs: number;
  readonly workers: number;
  readonly sms: number | readonly number[];
  readonly address: string | undefined;
  readonly port: number | undefined;
  readonly token: string | undefined;
  readonly ncclLibrary: string | undefined;
  readonly ncclHome: string | undefined;
  readonly logLevel: LogLevel;
  readonly planCacheEntries: number;
  readonly transferPath: TransferPathChoice;
}

/** The name of an option in a call. */
export type OptionName = keyof Options;

/** A row of the table. */
export interface OptionSpec<T> {
  readonly variable: string;
  readonly kind: OptionKind<NonNullable<T>>;
  readonly default: T;
  /** How the default reads in the documentation where the value alone says too little. */
  readonly defaultText?: string;
  /** Whether all ranks must hold the same value; compared when ranks come together. */
  readonly ranksAgree: boolean;
  /** The value is never shown: not by `doctor`, not in errors. */
  readonly secret?: true;
  /** The option of another call that stands for it: no world takes it. */
  readonly call?: string;
  /** How ranks of several processes meet: `init` takes it, and no world of one process. */
  readonly meeting?: true;
  /** One or two sentences of Markdown. */
  readonly doc: string;
}

/** All options, in the order of the documentation. */
export const optionTable: { readonly [N in OptionName]: OptionSpec<Options[N]> } = {
  backend: {
    variable: 'NCCL_EXT_BACKEND',
    kind: oneOf('auto', 'embedded', 'cuda', 'cuda12', 'cuda13'),
    default: 'auto',
    ranksAgree: true,
    doc:
      '`auto`: the installed GPU backend, or the embedded backend when none is installed. `cuda`: the installed GPU backend, ' +
      'or an error. `cuda12`, `cuda13`: this one, even if both are installed.',
  },
  timeoutMs: {
    variable: 'NCCL_EXT_TIMEOUT_MS',
    kind: integer(1, 0x7fff_ffff),
    default: 30_000,
    ranksAgree: true,
    doc: 'Milliseconds that a rank waits for a peer before it fails with `ERR_TIMEOUT`.',
  },
  workers: {
    variable: 'NCCL_EXT_WORKERS',
    kind: integer(0, 256),
    default: 0,
    defaultText: '`0`: available cores, at most one per rank',
    ranksAgree: false,
    doc: 'Worker threads of the embedded backend. Any number serves any number of ranks.',
  },
  sms: {
    variable: 'NCCL_EXT_SMS',
    kind: perRank(0, 1024),
    default: 0,
    defaultText: '`0`: 0.8 x SMs of the GPU / ranks on it, rounded down',
    ranksAgree: false,
    doc:
      'SMs of the GPU that the operations in flight of one rank may hold; more of them wait their turn. One number for all ranks, or one per ' +
      'rank (`[28, 28, 4, 4]`, in the variable `28,28,4,4`): ranks that only receive need few. Kernels that wait for peers must all be ' +
      'resident: what the ranks on a GPU ask for is together at most its SMs. The embedded backend has none.',
  },
  address: {
    variable: 'NCCL_EXT_ADDR',
    kind: text('a host name or address of the host of rank 0'),
    default: undefined,
    defaultText: '`MASTER_ADDR`; under srun the first node of the step',
    ranksAgree: false,
    meeting: true,
    doc: 'Where ranks that a launcher started meet rank 0: for `init` only, as are the port and the token.',
  },
  port: {
    variable: 'NCCL_EXT_PORT',
    kind: integer(1, 65_535),
    default: undefined,
    defaultText: '`MASTER_PORT` + 1',
    ranksAgree: false,
    meeting: true,
    doc: 'The TCP port on which they meet. `MASTER_PORT` itself may be held by the store of torchrun.',
  },
  token: {
    variable: 'NCCL_EXT_TOKEN',
    // Rank 0 reads at most 4096 bytes before it knows who is there.
    kind: text('a text of 1 to 512 characters', 512),
    default: undefined,
    defaultText: 'none',
    ranksAgree: false,
    secret: true,
    meeting: true,
    doc:
      'A secret that ranks must know to meet rank 0; without one any process that reaches the port may join. ' +
      'It is not encrypted on its way.',
  },
  ncclLibrary: {
    variable: 'NCCL_EXT_NCCL_LIBRARY',
    kind: text('the path of libnccl.so.2'),
    default: undefined,
    defaultText: 'searched',
    ranksAgree: false,
    doc: 'The NCCL library of the GPU backends; nothing else is tried. NCCL is loaded once per process, for its first world.',
  },
  ncclHome: {
    variable: 'NCCL_HOME',
    kind: text('a directory that has lib/libnccl.so.2'),
    default: undefined,
    defaultText: 'searched',
    ranksAgree: false,
    doc: 'A directory whose `lib` or `lib64` has `libnccl.so.2`; tried before all other places.',
  },
  logLevel: {
    variable: 'NCCL_EXT_LOG_LEVEL',
    kind: oneOf(...logLevels),
    default: 'warn',
    ranksAgree: false,
    doc: 'The least important messages to log: on stderr, or through the `logger` of the call.',
  },
  planCacheEntries: {
    variable: 'NCCL_EXT_PLAN_CACHE_ENTRIES',
    kind: integer(0, 65_536),
    default: 64,
    ranksAgree: false,
    call: 'cacheEntries to createPlan',
    doc:
      'Plans that the process keeps for reuse, the least recently used leaves first. `0` keeps none. No option of a world, which has no part in ' +
      'planning: in a call it is `createPlan({ cacheEntries })`.',
  },
  transferPath: {
    variable: 'NCCL_EXT_TRANSFER_PATH',
    kind: oneOf('auto', 'mapped', 'sendrecv'),
    default: 'auto',
    ranksAgree: true,
    doc:
      'How transfers of the GPU backends move bytes. `auto`: a rank writes into the memory of a peer that it can reach, and sends ' +
      'through NCCL to one that it cannot. `mapped`: writing only; what cannot be reached is `ERR_UNSUPPORTED` with the reason. ' +
      '`sendrecv`: sending only, for tests and measurements. The embedded backend always writes.',
  },
};

/** The names, in the order of the table. */
export const optionNames: readonly OptionName[] = Object.keys(optionTable) as OptionName[];

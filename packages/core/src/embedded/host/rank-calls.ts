// SPDX-License-Identifier: Apache-2.0
// Calls that make, end and compare ranks.

import { availableParallelism } from 'node:os';
import type {
  ErrorRecord,
  JoinConfig,
  LocalRanksConfig,
  Outcome,
  RankHandle,
  RuntimeSpi,
} from '../../contract/index.js';
import { rankWord } from '../control/world-layout.js';
import { maxWorkers } from '../memory/arena.js';
import { collective, takeDisagreement } from './collective.js';
import { disposeRankState } from './dispose-rank.js';
import { checkInteger, errorRecord, failed, isError, succeeded } from './errors.js';
import type { RankState } from './objects.js';
import { openRank } from './open-rank.js';
import { standStill } from './standstill.js';
import type { BackendState } from './state.js';
import { World } from './world.js';

/** The most ranks of one embedded world. */
const maxRanks = 1024;
/** As on a GPU, although nothing here has any. */
const maxSms = 1024;
/** A deadline must fit a timer of Node. */
const maxTimeoutMs = 2 ** 31 - 1;

type RankCalls = Pick<
  RuntimeSpi,
  | 'createLocalRanks'
  | 'joinRank'
  | 'abortRank'
  | 'disposeRank'
  | 'poisonOf'
  | 'deviceOf'
  | 'factsOf'
  | 'exchange'
>;

export function rankCalls(state: BackendState): RankCalls {
  return {
    createLocalRanks: (config) => createLocalRanks(state, config),

    async joinRank(config: JoinConfig) {
      return failed(
        errorRecord(
          'ERR_SINGLE_PROCESS',
          'joinRank',
          `the embedded backend cannot join rank ${config.rank} of ${config.worldSize}: its ranks live in one process`,
          { rank: config.rank, help: 'Use localWorld({ ranks }), or install a GPU backend.' },
        ),
      );
    },

    abortRank(handle, reason) {
      const rank = state.rank(handle, 'abort');
      if (isError(rank)) return state.refuse(rank);
      abort(rank, reason);
      return 0;
    },

    async disposeRank(handle) {
      const rank = state.handles.get('rank', handle, 'dispose');
      if (isError(rank)) return failed(rank);
      rank.disposal ??= disposeRankState(state, rank);
      await rank.disposal;
      return succeeded(undefined);
    },

    poisonOf(handle) {
      const rank = state.handles.get('rank', handle, 'poisonOf');
      return isError(rank) ? rank : rank.world.poisonOf(rank.rank);
    },

    deviceOf(handle) {
      const rank = state.handles.get('rank', handle, 'deviceOf');
      return {
        index: 0,
        name: 'embedded (memory of this process)',
        uuid: '',
        multiprocessors: 0,
        ranks: isError(rank) ? 0 : rank.world.crew.root.ranks,
        smBudget: 0,
      };
    },

    factsOf: () => ({}),

    async exchange(handle, topic, payload) {
      const rank = state.rank(handle, 'exchange');
      if (isError(rank)) return failed(rank);
      const part = payload.slice();
      if (takeDisagreement(rank, topic)) falsify(part);
      return collective<Uint8Array, readonly Uint8Array[]>(rank, {
        op: 'exchange',
        topic,
        agreed: { field: 'topic', value: topic },
        part,
        finish: (parts) => parts.map(() => succeeded(parts.map((bytes) => bytes.slice()))),
      });
    },
  };
}

async function createLocalRanks(
  state: BackendState,
  config: LocalRanksConfig,
): Promise<Outcome<readonly RankHandle[]>> {
  const op = 'createLocalRanks';
  const wrong =
    checkInteger(op, 'ranks', config.ranks, 1, maxRanks) ??
    checkInteger(op, 'workers', config.workers, 0, maxWorkers) ??
    checkSms(op, config) ??
    checkInteger(op, 'timeoutMs', Math.ceil(config.timeoutMs), 1, maxTimeoutMs);
  if (wrong !== undefined) return failed(wrong);
  if (state.disposed) return failed(errorRecord('ERR_DISPOSED', op, 'the backend was disposed'));
  const workers = config.workers === 0 ? Math.min(availableParallelism(), config.ranks) : config.workers;
  const world = World.open(state.arena, { ranks: config.ranks, timeoutMs: config.timeoutMs, workers });
  if (world === undefined)
    return failed(
      errorRecord('ERR_OUT_OF_MEMORY', op, `no memory for the control words of ${config.ranks} ranks`),
    );
  try {
    await world.start(state.pool);
  } catch (cause) {
    await world.close();
    const text = cause instanceof Error ? cause.message : String(cause);
    return failed(errorRecord('ERR_INTERNAL', op, `worker threads could not be started: ${text}`));
  }
  state.worlds.add(world);
  for (let rank = 0; rank < config.ranks; rank++) openRank(state, world, rank, undefined);
  return succeeded(world.ranks.map((rank) => rank.handle));
}

function checkSms(op: string, { ranks, sms }: LocalRanksConfig): ErrorRecord | undefined {
  if (typeof sms === 'number') return checkInteger(op, 'sms', sms, 0, maxSms);
  if (sms.length !== ranks)
    return errorRecord('ERR_INVALID_ARGUMENT', op, `sms must hold one number per rank (${ranks})`);
  return sms.reduce<ErrorRecord | undefined>(
    (wrong, one, rank) => wrong ?? checkInteger(op, `sms[${rank}]`, one, 0, maxSms),
    undefined,
  );
}

/** Ends every wait of the rank, on streams and in host calls. */
function abort(rank: RankState, reason: string): void {
  const error = errorRecord('ERR_ABORTED', 'abort', `rank ${rank.rank} was aborted: ${reason}`, {
    rank: rank.rank,
  });
  rank.world.poison(rank.rank, error);
  rank.world.leaveMeetings(rank.rank, error, 'aborted');
  rank.world.setRankWord(rank.rank, rankWord.lost, 1);
  standStill(rank, false);
}

function falsify(bytes: Uint8Array): void {
  for (let i = 0; i < bytes.length; i++) bytes[i]! ^= 0xff;
}

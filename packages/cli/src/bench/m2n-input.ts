// SPDX-License-Identifier: Apache-2.0
// The command line of `bench m2n`, and where its ranks are: in this process, or one in each process that a launcher started.

import { type Launch, probeBackend } from '@nccl-ext/core';
import type { ArgsDef } from 'citty';
import { type Arguments, wrongValue } from '../arguments/arguments.js';
import { backendArguments, readBackendInput, requireGpuFor } from '../arguments/backend-arguments.js';
import { launchOf, requireJoinable } from '../arguments/launched.js';
import { pathArgument, readPath } from '../arguments/path-argument.js';
import { byCopyEngines, type SmShares, smsArgument, smsByRank, smsOf } from '../arguments/sms-argument.js';
import type { Session } from '../command.js';
import type { DeviceInput, SmSetting } from './bench-device.js';
import type { HostInput } from './bench-host.js';
import { openLaunched, openLocal } from './bench-world.js';
import { spreadRanks } from './sides.js';

const hostBytes = 256 * 2 ** 20;
const deviceBytes = 2 ** 30;
/** Of the embedded backend, and of one GPU. */
const sharedRanks = 8;
/** Stands for no `--sms` in a list of several. */
const defaultShare = 'default';

export const m2nArguments: ArgsDef = {
  ranks: {
    type: 'string',
    valueHint: 'N',
    description:
      'Ranks, half of them sources: 2 or a multiple of 4; default 8, on several GPUs one on each. A launcher says it itself',
  },
  bytes: {
    type: 'string',
    valueHint: 'LIST',
    description: 'Bytes of the tensor, several with commas; default 256MiB, on GPUs 1GiB',
  },
  ...backendArguments,
  sms: smsArgument,
  sweep: {
    type: 'string',
    valueHint: 'LIST',
    description: `Several values of --sms to compare, as in 8,16,28+4 or ${defaultShare},0`,
  },
  path: pathArgument,
  save: { type: 'string', valueHint: 'FILE.json', description: 'Write what --json prints to a file too' },
};

/** What to measure, and whether this process reports it. */
export type M2nInput = {
  readonly reports: boolean;
  readonly save: string | undefined;
  readonly backendReason: string;
} & (
  | ({ readonly kind: 'host' } & Omit<HostInput, 'signal' | 'progress'>)
  | ({ readonly kind: 'device' } & Omit<DeviceInput, 'signal' | 'progress'>)
);

export async function readM2nInput({ arguments: args, env, signal }: Session): Promise<M2nInput> {
  const launch = launchOf(env);
  const settings = readSettings(args, launch);
  const asked = readSizes(args);
  const ranks = readRanks(args, launch);
  const transferPath = readPath(args);
  const { backend, backendReason, workers, timeoutMs } = readBackendInput(args, env);
  requireGpuFor(args, ['sms', 'sweep', 'path'], backend);
  requireJoinable('bench m2n', backend, launch);
  const sizes = asked ?? [backend === 'embedded' ? hostBytes : deviceBytes];
  const common = { sizes, backendReason, save: args.text('save'), reports: (launch?.rank ?? 0) === 0 };
  if (backend === 'embedded') {
    return {
      ...common,
      kind: 'host',
      ranks: ranks ?? sharedRanks,
      workers,
      open: (count, threads) => openLocal({ ranks: count, workers: threads, backend, timeoutMs, signal }),
    };
  }
  const world = { backend, timeoutMs, transferPath };
  if (launch !== undefined)
    return {
      ...common,
      kind: 'device',
      settings,
      open: (setting) => openLaunched({ ...world, env, sms: sharesOf(setting)?.senders }),
    };
  const gpus = (await probeBackend(backend)).probe?.devices.length ?? 1;
  const devices = spreadRanks(ranks ?? (gpus > 1 ? evenRanks(gpus) : sharedRanks), gpus);
  return {
    ...common,
    kind: 'device',
    settings,
    open: (setting) => {
      const shares = sharesOf(setting);
      const sms = shares && smsByRank(shares, devices.length);
      return openLocal({ ...world, ranks: devices.length, devices, sms, signal });
    },
  };
}

/** What a world is told; undefined: ranks have what the environment says, else their default shares. */
function sharesOf(setting: SmSetting): SmShares | undefined {
  return byCopyEngines(setting) ? undefined : setting;
}

/** One on each GPU, as far as rows can be made of them. */
function evenRanks(gpus: number): number {
  return gpus < 4 ? 2 : gpus - (gpus % 4);
}

function readRanks(args: Arguments, launch: Launch | undefined): number | undefined {
  const ranks = args.integer('ranks', 2, 64);
  if (launch !== undefined && ranks !== undefined && ranks !== launch.worldSize)
    throw wrongValue('ranks', String(ranks), `${launch.worldSize}, as the launcher says, or left out`);
  const all = launch?.worldSize ?? ranks;
  if (all === undefined || all === 2 || all % 4 === 0) return all;
  throw wrongValue('ranks', String(all), '2 or a multiple of 4, from 4 to 64');
}

function readSizes(args: Arguments): number[] | undefined {
  return args.list('bytes')?.map((text) => args.bytesOf('bytes', text, 16 * 2 ** 20, 2 ** 36));
}

function readSettings(args: Arguments, launch: Launch | undefined): SmSetting[] {
  const alone = args.text('sms');
  const sweep = args
    .list('sweep')
    ?.map((text) => (text === defaultShare ? undefined : smsOf('sweep', text, '+')));
  const settings = sweep ?? [alone === undefined ? undefined : smsOf('sms', alone, ',')];
  if (sweep !== undefined && alone !== undefined) args.exactlyOne(['sms', 'sweep']);
  if (launch === undefined) return settings;
  // Ranks of processes meet once: a second world would look for the first one's meeting point.
  if (settings.length > 1)
    throw wrongValue('sweep', args.text('sweep')!, 'one value where a launcher starts the ranks');
  const [one] = settings;
  // Who sends is known when the ranks have met.
  if (one !== undefined && one.senders !== one.receivers)
    throw wrongValue(
      alone === undefined ? 'sweep' : 'sms',
      alone ?? args.text('sweep')!,
      'one number where a launcher starts the ranks, or NCCL_EXT_SMS of each process',
    );
  return settings;
}

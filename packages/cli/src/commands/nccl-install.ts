// SPDX-License-Identifier: Apache-2.0
// `nccl-ext nccl install`: NCCL, which we may not ship, into the user's cache, where the backends look.

import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { describeBackends, NcclExtError } from '@nccl-ext/core';
import type { Arguments } from '../arguments/arguments.js';
import { type Command, defineLeaf, type Outcome, type Session } from '../command.js';
import { chooseCuda } from '../nccl/choose-cuda.js';
import { installNccl } from '../nccl/install.js';
import { installText } from '../nccl/install-text.js';
import { type CudaMajor, cudaMajors, ncclPins } from '../nccl/pins.js';
import { earlierChoice } from '../nccl/places.js';

export const ncclInstallCommand: Command = defineLeaf({
  meta: { name: 'install', description: 'Bring the NCCL that GPU backends need into your cache folder' },
  usage: ['[options]'],
  args: {
    cuda: {
      type: 'string',
      valueHint: '12|13',
      description:
        'CUDA that it is built for; default that of --file, of the installed backend, or the newest of the driver',
    },
    'index-url': {
      type: 'string',
      valueHint: 'URL',
      description: 'Package index; default what pip is configured for',
    },
    file: { type: 'string', valueHint: 'WHEEL', description: 'Take this wheel instead of asking pip' },
  },
  examples: [
    { what: 'The build for the backend that is installed', line: 'nccl-ext nccl install' },
    {
      what: 'Without a network, from a wheel that was copied here',
      line: `nccl-ext nccl install --file ${ncclPins[13].file}`,
    },
  ],
  run: runInstall,
});

async function runInstall({ arguments: args, env, signal, progress }: Session): Promise<Outcome> {
  requireLinux();
  const indexUrl = args.text('index-url');
  const file = args.text('file') === undefined ? undefined : resolve(args.text('file')!);
  if (indexUrl !== undefined && file !== undefined) args.exactlyOne(['index-url', 'file']);
  if (file !== undefined) await requireFile(file);
  const pin = ncclPins[wantedCuda(args, file)];
  const say = (text: string): void => progress.say(text);
  const installed = await installNccl({ pin, file, indexUrl, env, signal, say });
  const overriddenBy = earlierChoice(env);
  return {
    ok: true,
    json: { ok: true, ...pin, ...installed, overriddenBy: overriddenBy ?? null },
    text: (style) => installText({ pin, installed, overriddenBy }, style),
  };
}

function wantedCuda(args: Arguments, file: string | undefined): CudaMajor {
  const given = args.oneOf('cuda', ['12', '13']) ?? /nvidia_nccl_cu(12|13)-[^/]*$/.exec(file ?? '')?.[1];
  return cudaMajors.find((major) => String(major) === given) ?? chooseCuda(describeBackends());
}

/** The wheels hold no other library. */
function requireLinux(): void {
  const [seen, expected] = [`${process.platform}-${process.arch}`, 'linux-x64'];
  if (seen === expected) return;
  throw new NcclExtError('ERR_UNSUPPORTED', `NCCL is pinned for ${expected}; this is ${seen}.`, {
    expected,
    seen,
  });
}

async function requireFile(path: string): Promise<void> {
  if ((await stat(path).catch(() => undefined))?.isFile() === true) return;
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `--file ${path} is not a file.`, {
    help: 'Name the wheel of NCCL.',
    field: '--file',
    seen: path,
  });
}

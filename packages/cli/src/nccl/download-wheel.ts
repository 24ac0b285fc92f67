// SPDX-License-Identifier: Apache-2.0
// Brings a wheel the way the user's pip brings all others: index, mirror, proxy and certificates are in its configuration.

import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { NcclExtError } from '@nccl-ext/core';
import type { NcclPin } from './pins.js';
import { runPython } from './python.js';

export interface Download {
  readonly pin: NcclPin;
  /** Replaces the index of pip's configuration. */
  readonly indexUrl: string | undefined;
  /** A folder for this alone; the wheel lands below it. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/**
 * The path of the wheel that pip brought. It is not checked yet.
 *
 * @throws ERR_NCCL_NOT_FOUND with what pip said
 */
export async function downloadWheel({ pin, indexUrl, folder, env, signal }: Download): Promise<string> {
  const to = join(folder, 'download');
  await mkdir(to);
  const module = [
    ...['pip', 'download', '--quiet', '--disable-pip-version-check', '--no-input', '--no-deps'],
    ...['--only-binary=:all:', ...platformsOf(pin.file), '--dest', to],
    ...(indexUrl === undefined ? [] : [`--index-url=${indexUrl}`]),
    `${pin.name}==${pin.version}`,
  ];
  const { ok, said } = await runPython({ module, folder, env, signal });
  if (!ok) throw failed(pin, said);
  const wheel = (await readdir(to)).find((name) => name.endsWith('.whl'));
  if (wheel === undefined) throw failed(pin, 'it brought no wheel');
  return join(to, wheel);
}

/** The pinned wheel, whatever pip would prefer on this machine. */
function platformsOf(file: string): string[] {
  const tags = file
    .replace(/\.whl$/, '')
    .split('-')
    .at(-1)!;
  return tags.split('.').map((tag) => `--platform=${tag}`);
}

function failed({ name, version, file }: NcclPin, said: string): NcclExtError {
  const noPip = /No module named '?pip/.test(said);
  const message = noPip
    ? 'python3 has no pip, which brings the wheel.'
    : `pip could not bring ${name} ${version}: ${said}`;
  const help = [
    noPip ? 'Install pip for python3.' : 'Name an index that has it with --index-url URL.',
    `Or bring ${file} here yourself and add --file ${file}.`,
  ].join('\n');
  return new NcclExtError('ERR_NCCL_NOT_FOUND', message, { help });
}

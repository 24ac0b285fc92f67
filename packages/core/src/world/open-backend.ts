// SPDX-License-Identifier: Apache-2.0
// From options to a running backend: resolve, load, check the contract.

import { loadBackend } from '../backend/load.js';
import { processContext } from '../backend/loader-context.js';
import { type Backend, contractVersion, type LoadOptions } from '../contract/index.js';
import { NcclExtError } from '../errors/nccl-ext-error.js';
import { type Logger, openLogger } from '../observe/logger.js';
import { type OptionName, type Options, optionNames, optionTable } from '../options/option-table.js';
import { type Environment, resolveOptions } from '../options/resolve-options.js';
import { requireWorldOptions, type WorldCall, type WorldOptions } from '../options/world-options.js';
import type { AgreedFields } from '../runtime/communicator.js';

/** The backend that the options of `call` ask for, and the options as resolved. */
export async function openBackend(
  call: WorldCall,
  explicit: WorldOptions,
  logger: Logger | undefined,
  env: Environment = process.env,
): Promise<{ readonly backend: Backend; readonly values: Options }> {
  requireWorldOptions(call, explicit);
  const { values, warnings } = resolveOptions(explicit, env);
  const log = openLogger(values.logLevel, logger);
  for (const { message } of warnings) if (logger !== undefined || first(message)) log.warn(message);
  const loaded = await loadBackend(values.backend, processContext(), ncclOf(values));
  const backend = loaded.kind === 'embedded' ? await openEmbedded() : loaded.module;
  if (backend.info.contractVersion !== contractVersion) {
    throw new NcclExtError(
      'ERR_BACKEND_VERSION',
      `The ${backend.info.name} backend speaks contract ${backend.info.contractVersion}; this core speaks ${contractVersion}.`,
      {
        help: 'Install the same version of every @nccl-ext package.',
        expected: contractVersion,
        seen: backend.info.contractVersion,
      },
    );
  }
  log.debug('backend opened', { backend: backend.info.name, version: backend.info.version });
  return { backend, values };
}

/** Said on stderr already: a process that makes many worlds says it once. */
const said = new Set<string>();

function first(message: string): boolean {
  return said.size < said.add(message).size;
}

/** The options that all ranks must hold alike, for `communicator.agree`. */
export function agreedOptions(values: Options): AgreedFields {
  const names = optionNames.filter((name: OptionName) => optionTable[name].ranksAgree);
  // Lists are by rank, and no rank is asked to agree on those.
  return Object.fromEntries(
    names.map((name) => [name, (values[name] as string | number | undefined) ?? null]),
  );
}

function ncclOf({ ncclLibrary, ncclHome }: Options): LoadOptions {
  return {
    ...(ncclLibrary === undefined ? {} : { ncclLibrary }),
    ...(ncclHome === undefined ? {} : { ncclHome }),
  };
}

// On demand: programs on a GPU never load the embedded backend.
async function openEmbedded(): Promise<Backend> {
  const { createEmbeddedBackend } = await import('../embedded/index.js');
  return createEmbeddedBackend();
}

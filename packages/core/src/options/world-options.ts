// SPDX-License-Identifier: Apache-2.0
// Options that a world takes: all but those that belong to another call, where they would have no effect.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { type OptionName, optionNames, optionTable } from './option-table.js';
import type { ExplicitOptions } from './resolve-options.js';

/** Options of `localWorld` and `init`; undefined means not given. A plan is made without a world, so its cache is none of them. */
export type WorldOptions = Omit<ExplicitOptions, 'planCacheEntries'>;

/** @throws ERR_INVALID_ARGUMENT for an option that another call takes, naming that call. */
export function requireWorldOptions(options: object): void {
  const name = optionNames.find((one) => optionTable[one].call !== undefined && Object.hasOwn(options, one));
  if (name !== undefined) throw noWorldOption(name);
}

function noWorldOption(name: OptionName): NcclExtError {
  const { call, variable } = optionTable[name];
  return new NcclExtError('ERR_INVALID_ARGUMENT', `${name} is no option of a world.`, {
    help: `Pass ${call}, or set ${variable} for the whole process.`,
    field: name,
  });
}

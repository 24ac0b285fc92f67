// SPDX-License-Identifier: Apache-2.0
// Options that a world takes: all but those that belong to another call, where they would have no effect.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { type OptionName, optionNames, optionTable } from './option-table.js';
import { requireKnownOptions } from './require-known-options.js';
import type { ExplicitOptions } from './resolve-options.js';

/** Options of `init`; undefined means not given. A plan is made without a world, so its cache is none of them. */
export type WorldOptions = Omit<ExplicitOptions, 'planCacheEntries'>;

/** Options of `localWorld`, whose ranks are in one process and meet nowhere. */
export type OneProcessOptions = Omit<WorldOptions, 'address' | 'port' | 'token'>;

/** A call that makes a world. */
export type WorldCall = 'localWorld' | 'init';

/** @throws ERR_INVALID_ARGUMENT for an option that only another call takes, naming that call, and for one that there is not. */
export function requireWorldOptions(call: WorldCall, options: object): void {
  const [taken, others] = partition(call);
  const name = others.find((one) => Object.hasOwn(options, one));
  if (name !== undefined) throw noWorldOption(name);
  requireKnownOptions(options, taken);
}

/** Names that `call` takes, and the others. */
function partition(call: WorldCall): readonly [readonly OptionName[], readonly OptionName[]] {
  const takes = (name: OptionName): boolean => {
    const { call: other, meeting } = optionTable[name];
    return other === undefined && (meeting === undefined || call === 'init');
  };
  return [optionNames.filter(takes), optionNames.filter((name) => !takes(name))];
}

function noWorldOption(name: OptionName): NcclExtError {
  const { call, variable } = optionTable[name];
  if (call === undefined) {
    return new NcclExtError('ERR_INVALID_ARGUMENT', `${name} is no option of localWorld.`, {
      help: `Its ranks are all in this process. Pass ${name} to init, for ranks that a launcher starts.`,
      field: name,
    });
  }
  return new NcclExtError('ERR_INVALID_ARGUMENT', `${name} is no option of a world.`, {
    help: `Pass ${call}, or set ${variable} for the whole process.`,
    field: name,
  });
}

// SPDX-License-Identifier: Apache-2.0
// Which options are in effect and where they came from, and variables that look like options and are none.

import {
  NcclExtError,
  type OptionName,
  type OptionOrigin,
  type Options,
  resolveOptions,
} from '@nccl-ext/core';
import { optionNames, optionTable } from '@nccl-ext/core/extend';
import { type Check, failed, ok, warning } from './check.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** An option in effect; `value` is null where none is set and none is the default, and never that of a secret. */
export interface OptionLine {
  readonly option: OptionName;
  readonly variable: string;
  readonly value: string | number | readonly number[] | null;
  readonly origin: OptionOrigin;
}

/** Stands for the value of a secret that is set. */
const hidden = 'set, not shown';

export interface OptionFindings {
  readonly options: readonly OptionLine[];
  /** One check for each option that is wrong, or one for all when none is; one for each unknown variable. */
  readonly checks: readonly Check[];
  /** The choice of backend; `auto` when the variable that says it is wrong. */
  readonly backend: Options['backend'];
}

/** `asked`: the backend that the command line names. */
export function optionChecks(env: Environment, asked?: Options['backend']): OptionFindings {
  const options: OptionLine[] = [];
  const wrong: Check[] = [];
  for (const option of optionNames) {
    const { variable } = optionTable[option];
    const found = resolve(option, env[variable]);
    if ('problem' in found) wrong.push(found.problem);
    else if (option === 'backend' && asked !== undefined)
      options.push({ option, variable, value: asked, origin: 'call' });
    else options.push({ option, variable, ...found });
  }
  const unknown = resolveOptions({}, onlyUnknown(env)).warnings.map(({ variable, suggestion }) =>
    warning(
      variable,
      'is no option and has no effect',
      suggestion === undefined ? `Unset it; options are in docs/options.md.` : `Did you mean ${suggestion}?`,
    ),
  );
  const set = options.filter(({ origin }) => origin === 'environment');
  const summary =
    set.length === 0 ? 'all have their defaults' : `${set.map(({ variable }) => variable).join(', ')} set`;
  const backend = options.find(({ option }) => option === 'backend')?.value as Options['backend'] | undefined;
  return {
    options,
    checks: [...(wrong.length === 0 ? [ok('Options', summary)] : wrong), ...unknown],
    backend: asked ?? backend ?? 'auto',
  };
}

// One variable at a time, so that one that is wrong does not hide the others.
function resolve(
  option: OptionName,
  text: string | undefined,
):
  | { readonly value: string | number | readonly number[] | null; readonly origin: OptionOrigin }
  | { readonly problem: Check } {
  const { variable, kind, secret } = optionTable[option];
  try {
    const { values, origins } = resolveOptions({}, { [variable]: text });
    const value = values[option] ?? null;
    return { value: secret && value !== null ? hidden : value, origin: origins[option] };
  } catch (error) {
    if (!NcclExtError.is(error)) throw error;
    return {
      problem: failed(
        variable,
        secret ? 'has a wrong value (a secret, not shown)' : `is ${JSON.stringify(text)}`,
        `Set it to ${kind.allowed}, or unset it.`,
      ),
    };
  }
}

function onlyUnknown(env: Environment): Environment {
  const known = new Set(optionNames.map((name) => optionTable[name].variable));
  return Object.fromEntries(Object.entries(env).filter(([name]) => !known.has(name)));
}

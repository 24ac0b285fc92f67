// SPDX-License-Identifier: Apache-2.0
// Which value each option has and why: the call wins over the environment, the environment over the default.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { requireObject } from '../errors/require-kind.js';
import { describe } from '../mesh/require-integer.js';
import { nearestName } from './nearest-name.js';
import { type OptionName, type OptionSpec, type Options, optionNames, optionTable } from './option-table.js';
import { requireKnownOptions } from './require-known-options.js';

/** Environment variables by name, such as `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Options of a call; undefined means not given. */
export type ExplicitOptions = { readonly [N in OptionName]?: Options[N] | undefined };

/** Where a value came from. */
export type OptionOrigin = 'call' | 'environment' | 'default';

/** An environment variable that looks like one of ours and is none. */
export interface UnknownVariable {
  readonly variable: string;
  /** The variable that was probably meant. */
  readonly suggestion: string | undefined;
  readonly message: string;
}

export interface ResolvedOptions {
  readonly values: Options;
  readonly origins: Readonly<Record<OptionName, OptionOrigin>>;
  readonly warnings: readonly UnknownVariable[];
}

/**
 * The value of every option, where it came from, and unknown variables that start with `NCCL_EXT_`.
 * A variable that is set to the empty string counts as not set.
 *
 * @throws ERR_INVALID_ARGUMENT naming the option or variable, its value and what is allowed.
 * @example
 * ```ts
 * const { values, origins } = resolveOptions({ workers: 2 }, { NCCL_EXT_TIMEOUT_MS: '500' });
 * values.timeoutMs; // 500
 * origins.timeoutMs; // 'environment'
 * ```
 */
export function resolveOptions(
  explicit: ExplicitOptions = {},
  env: Environment = process.env,
): ResolvedOptions {
  requireObject('options', explicit);
  requireObject('env', env);
  requireKnownOptions(explicit, optionNames);
  const values: Record<string, unknown> = {};
  const origins: Record<string, OptionOrigin> = {};
  for (const name of optionNames) {
    const { value, origin } = resolveOption(name, explicit[name], env);
    values[name] = value;
    origins[name] = origin;
  }
  return Object.freeze({
    values: Object.freeze(values) as unknown as Options,
    origins: Object.freeze(origins) as Record<OptionName, OptionOrigin>,
    warnings: unknownVariables(env),
  });
}

/** One option, as {@link resolveOptions} resolves it. */
export function resolveOption<N extends OptionName>(
  name: N,
  explicit: Options[N] | undefined,
  env: Environment,
): { value: Options[N]; origin: OptionOrigin } {
  const spec: OptionSpec<Options[N]> = optionTable[name];
  const { variable, kind } = spec;
  if (explicit !== undefined) {
    if (!kind.is(explicit)) throw invalid(spec, name, `Option ${name}`, explicit);
    return { value: unchanging(explicit), origin: 'call' };
  }
  const text = env[variable];
  if (text === undefined || text === '') return { value: spec.default, origin: 'default' };
  const value = kind.fromText(text);
  if (value === undefined) throw invalid(spec, variable, `Environment variable ${variable}`, text);
  return { value, origin: 'environment' };
}

/** A list that its caller cannot change later. */
function unchanging<T>(value: T): T {
  return Array.isArray(value) ? (Object.freeze([...value]) as T) : value;
}

function invalid(
  { kind, secret }: Pick<OptionSpec<unknown>, 'kind' | 'secret'>,
  field: string,
  subject: string,
  seen: unknown,
): NcclExtError {
  const problem = secret ? 'has a wrong value (a secret, not shown)' : `is ${describe(seen)}`;
  return new NcclExtError('ERR_INVALID_ARGUMENT', `${subject} ${problem}; it must be ${kind.allowed}.`, {
    field,
    expected: kind.allowed,
    ...(secret ? {} : { seen }),
  });
}

function unknownVariables(env: Environment): UnknownVariable[] {
  const known = optionNames.map((name) => optionTable[name].variable);
  return Object.keys(env)
    .filter((variable) => variable.startsWith('NCCL_EXT_') && !known.includes(variable))
    .sort()
    .map((variable) => {
      const suggestion = nearestName(variable, known);
      const advice = suggestion === undefined ? 'it has no effect' : `did you mean ${suggestion}?`;
      return { variable, suggestion, message: `Environment variable ${variable} is unknown: ${advice}` };
    });
}

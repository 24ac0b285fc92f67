// SPDX-License-Identifier: Apache-2.0
// Refuses what citty would silently ignore: unknown options, missing values, values of switches, options given twice, stray words.

import { parseArgs } from 'node:util';
import { NcclExtError } from '@nccl-ext/core';
import { nearestName } from '@nccl-ext/core/extend';
import type { ArgsDef } from 'citty';
import { parseOptions } from './parse-options.js';

type Token = NonNullable<ReturnType<typeof parseArgs>['tokens']>[number];
type OptionToken = Extract<Token, { kind: 'option' }>;

/**
 * Checks the arguments of the command `path` against its definitions.
 *
 * @throws ERR_INVALID_ARGUMENT naming the option and what to write instead.
 */
export function checkArguments(path: string, definitions: ArgsDef, rawArgs: readonly string[]): void {
  const options = parseOptions(definitions);
  const { tokens } = parseArgs({
    args: [...rawArgs],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const seen = new Set<string>();
  for (const token of tokens) {
    if (token.kind === 'option-terminator') throw stray(path, '--');
    if (token.kind === 'positional') throw stray(path, token.value);
    const option = options[token.name];
    if (option === undefined) throw unknownOption(path, token.rawName, Object.keys(options));
    if (seen.has(token.name)) throw refuse(token, `${token.rawName} is given twice.`, 'Give it once.');
    seen.add(token.name);
    if (option.type === 'boolean') rejectValue(token);
    else requireValue(token, definitions[token.name]!);
  }
}

function rejectValue(token: OptionToken): void {
  if (token.value === undefined) return;
  throw refuse(
    token,
    `${token.rawName} takes no value, but has ${JSON.stringify(token.value)}.`,
    `Write ${token.rawName} alone.`,
  );
}

function requireValue(token: OptionToken, { valueHint = 'VALUE' }: { readonly valueHint?: string }): void {
  const { rawName, value, inlineValue } = token;
  // What starts with a dash is an option that follows, unless it was joined by an equals sign or is a number.
  const given = inlineValue === true || !/^-(?!\d)/.test(value ?? '');
  if (value !== undefined && value !== '' && given) return;
  throw refuse(token, `${rawName} needs a value.`, `Write ${rawName} ${valueHint}.`);
}

function unknownOption(path: string, rawName: string, names: readonly string[]): NcclExtError {
  const bare = rawName.replace(/^-+/, '');
  const suggestion = nearestName(bare, names);
  return new NcclExtError('ERR_INVALID_ARGUMENT', `\`${path}\` has no option ${rawName}.`, {
    help:
      bare.startsWith('no-') || suggestion === undefined
        ? `See \`${path} --help\`; a switch is off unless it is given.`
        : `Did you mean --${suggestion}?`,
    field: rawName,
    expected: names.map((name) => `--${name}`),
    seen: rawName,
  });
}

function stray(path: string, word: string): NcclExtError {
  return new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `\`${path}\` does not take the argument ${JSON.stringify(word)}.`,
    {
      help: `Values follow an option, as in --option value; see \`${path} --help\`.`,
      seen: word,
    },
  );
}

function refuse(token: OptionToken, message: string, help: string): NcclExtError {
  return new NcclExtError('ERR_INVALID_ARGUMENT', message, { help, field: token.rawName, seen: token.value });
}

// SPDX-License-Identifier: Apache-2.0
// Reads checked arguments as typed values, with errors that name the option as it was written.

import { NcclExtError } from '@nccl-ext/core';
import { optionTable } from '@nccl-ext/core/extend';
import { type ArgsDef, parseArgs } from 'citty';
import { binaryBytesText } from '../output/units.js';

/** Options of the command line that are options of the library too (docs/options.md). */
type LibraryNumber = 'timeoutMs' | 'workers';

/** The arguments of one command. */
export class Arguments {
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(definitions: ArgsDef, rawArgs: readonly string[]) {
    this.#values = parseArgs([...rawArgs], definitions);
  }

  has(name: string): boolean {
    return this.#values[name] !== undefined;
  }

  /** The values of an option that takes several, with commas between them; none is empty. */
  list(name: string): string[] | undefined {
    const value = this.text(name);
    const items = value?.split(',');
    if (value !== undefined && items?.includes(''))
      throw wrongValue(name, value, 'values with a comma between them');
    return items;
  }

  flag(name: string): boolean {
    return this.#values[name] === true;
  }

  text(name: string): string | undefined {
    const value = this.#values[name];
    return typeof value === 'string' ? value : undefined;
  }

  /** @throws ERR_INVALID_ARGUMENT unless the value is a decimal integer from `min` to `max`. */
  integer(name: string, min: number, max: number): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    if (/^\d+$/.test(value) && Number(value) >= min && Number(value) <= max) return Number(value);
    throw wrongValue(name, value, `an integer from ${min} to ${max}`);
  }

  /** A list of numbers from 0 to 1023 and ranges of them: `0-3`, `0,2,4-7`. */
  indices(name: string): readonly number[] | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const ranges = value.split(',').map((item) => /^(\d{1,4})(?:-(\d{1,4}))?$/.exec(item));
    const indices = ranges.flatMap((range) => {
      const [first, last] = [Number(range?.[1]), Number(range?.[2] ?? range?.[1])];
      return first <= last && last < 1024
        ? Array.from({ length: last - first + 1 }, (_, i) => first + i)
        : [-1];
    });
    if (!indices.includes(-1)) return indices;
    throw wrongValue(name, value, 'numbers and ranges from 0 to 1023, as in 0-3 or 0,2,4-7');
  }

  /** A number of bytes: `4096`, `256KiB`, `64MiB`, `1GiB`, or with decimal units (`kB`, `MB`, `GB`). */
  bytes(name: string, min: number, max: number): number | undefined {
    const value = this.text(name);
    return value === undefined ? undefined : this.bytesOf(name, value, min, max);
  }

  /** {@link bytes} of one `value` of an option that takes several. */
  bytesOf(name: string, value: string, min: number, max: number): number {
    const match = /^(\d+)\s*(B|kB|KB|MB|GB|KiB|MiB|GiB)?$/.exec(value);
    const bytes = match === null ? Number.NaN : Number(match[1]) * unitBytes[match[2] ?? 'B']!;
    if (bytes >= min && bytes <= max) return bytes;
    const limits = `${binaryBytesText(min)} to ${binaryBytesText(max)}`;
    throw wrongValue(name, value, `a number of bytes from ${limits}, as in 67108864, 64MiB or 64MB`);
  }

  /** @throws ERR_INVALID_ARGUMENT unless the value is one of `choices`. */
  oneOf<T extends string>(name: string, choices: readonly T[]): T | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const choice = choices.find((candidate) => candidate === value);
    if (choice !== undefined) return choice;
    throw wrongValue(name, value, `one of ${choices.join(', ')}`);
  }

  /** The value of an option that the library has too, within the library's limits. */
  libraryNumber(name: string, option: LibraryNumber): number | undefined {
    const value = this.text(name);
    return value === undefined ? undefined : this.libraryNumberOf(name, option, value);
  }

  /** {@link libraryNumber} of one `value` of an option that takes several. */
  libraryNumberOf(name: string, option: LibraryNumber, value: string): number {
    const { kind } = optionTable[option];
    const number = kind.fromText(value);
    if (number !== undefined) return number;
    throw wrongValue(name, value, kind.allowed);
  }

  /** @throws ERR_INVALID_ARGUMENT when one of `names` is given, which would change nothing; `why` says what it is for. */
  refuse(names: readonly string[], why: string): void {
    const name = names.find((candidate) => this.has(candidate));
    if (name === undefined) return;
    const help = 'Leave it out.';
    throw new NcclExtError('ERR_INVALID_ARGUMENT', `--${name} ${why}.`, { help, field: `--${name}` });
  }

  /** @throws ERR_INVALID_ARGUMENT unless exactly one of `names` is given. */
  exactlyOne(names: readonly [string, string]): string {
    const given = names.filter((name) => this.has(name));
    if (given.length === 1) return given[0]!;
    const [first, second] = names;
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      given.length === 0
        ? `--${first} or --${second} is missing.`
        : `--${first} and --${second} exclude each other.`,
      { help: `Give exactly one of --${first} and --${second}.`, field: `--${first}` },
    );
  }

  /** @throws ERR_INVALID_ARGUMENT when one of `names` is given without the other. */
  bothOrNone(names: readonly [string, string]): void {
    const missing = names.filter((name) => !this.has(name));
    if (missing.length !== 1) return;
    const [first, second] = names;
    throw new NcclExtError('ERR_INVALID_ARGUMENT', `--${missing[0]} is missing.`, {
      help: `Give both of --${first} and --${second}, or none.`,
      field: `--${missing[0]}`,
    });
  }
}

const unitBytes: Readonly<Record<string, number>> = {
  B: 1,
  kB: 1e3,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
};

/** The error for a value that an option does not take. */
export function wrongValue(name: string, value: string, allowed: string): NcclExtError {
  return new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    `--${name} is ${JSON.stringify(value)}; it must be ${allowed}.`,
    {
      field: `--${name}`,
      expected: allowed,
      seen: value,
    },
  );
}

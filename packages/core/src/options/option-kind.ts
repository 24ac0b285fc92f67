// SPDX-License-Identifier: Apache-2.0
// How the value of an option is read: from the text of an environment variable, or checked as given in a call.

/** A kind of value. */
export interface OptionKind<T> {
  /** What is allowed, as in `an integer from 0 to 256`. */
  readonly allowed: string;
  /** The value that a text means; undefined when it means none. */
  fromText(text: string): T | undefined;
  /** Whether a value given in a call is of this kind. */
  is(value: unknown): value is T;
}

export function oneOf<T extends string>(...values: readonly T[]): OptionKind<T> {
  const is = (value: unknown): value is T => values.includes(value as T);
  return { allowed: `one of ${values.join(', ')}`, is, fromText: (text) => (is(text) ? text : undefined) };
}

/** An integer from `min` to `max`; as text, decimal digits only (no sign, blank or exponent). */
export function integer(min: number, max: number): OptionKind<number> {
  const is = (value: unknown): value is number =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
  return {
    allowed: `an integer from ${min} to ${max}`,
    is,
    fromText: (text) => (/^\d+$/.test(text) && is(Number(text)) ? Number(text) : undefined),
  };
}

/** An integer from `min` to `max` for all ranks, or one per rank: a list without holes, as text with commas between. */
export function perRank(min: number, max: number): OptionKind<number | readonly number[]> {
  const one = integer(min, max);
  const is = (value: unknown): value is number | readonly number[] =>
    Array.isArray(value) ? value.length > 0 && Array.from(value).every(one.is) : one.is(value);
  return {
    allowed: `${one.allowed}, or one per rank`,
    is,
    fromText(text) {
      if (!text.includes(',')) return one.fromText(text);
      const values = text.split(',').map(one.fromText);
      return is(values) ? values : undefined;
    },
  };
}

export function text(allowed: string, longest: number = Number.POSITIVE_INFINITY): OptionKind<string> {
  const is = (value: unknown): value is string =>
    typeof value === 'string' && value !== '' && value.length <= longest;
  return { allowed, is, fromText: (value) => (is(value) ? value : undefined) };
}

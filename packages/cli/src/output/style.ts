// SPDX-License-Identifier: Apache-2.0
// Colour where a person looks on: on a terminal, unless NO_COLOR (https://no-color.org) or TERM=dumb says otherwise.

import { styleText } from 'node:util';

export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
}

/** The style for a stream. */
export function styleFor(
  stream: { readonly isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): Style {
  const off = stream.isTTY !== true || (env.NO_COLOR ?? '') !== '' || env.TERM === 'dumb';
  const paint =
    (format: Parameters<typeof styleText>[0]) =>
    (text: string): string =>
      off ? text : styleText(format, text, { validateStream: false });
  return {
    bold: paint('bold'),
    dim: paint('dim'),
    red: paint('red'),
    green: paint('green'),
    yellow: paint('yellow'),
  };
}

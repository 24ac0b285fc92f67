// SPDX-License-Identifier: Apache-2.0
// Builds HTML in which nothing is markup unless it was written as markup here: every value is escaped.

/** Markup that may stand in a document as it is. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** What may stand in `${...}`: text and numbers are escaped, lists are joined, undefined is nothing. */
export type HtmlValue = Html | string | number | undefined | readonly HtmlValue[];

/**
 * Markup with escaped values.
 *
 * @example
 * ```ts
 * html`<td>${'a < b'}</td>`.text; // <td>a &lt; b</td>
 * ```
 */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return new Html(strings.reduce((text, part, index) => text + textOf(values[index - 1]) + part));
}

function textOf(value: HtmlValue): string {
  if (value === undefined) return '';
  if (value instanceof Html) return value.text;
  if (typeof value === 'string' || typeof value === 'number') return escapeHtml(String(value));
  return value.map(textOf).join('');
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character]!);
}

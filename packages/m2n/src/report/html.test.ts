// SPDX-License-Identifier: Apache-2.0
// Values never become markup.

import { expect, it } from 'vitest';
import { Html, html } from './html.js';

it('escapes text, keeps markup, joins lists and drops undefined', () => {
  const name = `<b title="x" class='y'>&`;
  expect(html`<td>${name}</td>`.text).toBe('<td>&lt;b title=&quot;x&quot; class=&#39;y&#39;&gt;&amp;</td>');
  expect(html`<ul>${[1, 2].map((n) => html`<li>${n}</li>`)}</ul>`.text).toBe('<ul><li>1</li><li>2</li></ul>');
  expect(html`a${undefined}b${new Html('<i>')}`.text).toBe('ab<i>');
});

// SPDX-License-Identifier: Apache-2.0
// One HTML file that shows a refit to somebody who was not there: what moved, how fast, who sent what, and how it was checked.

import { version } from '@nccl-ext/core';
import type { RefitResult } from '../refit/refit-result.js';
import { byteSections } from './byte-sections.js';
import { type Html, type HtmlValue, html } from './html.js';
import { phaseSection } from './phase-section.js';
import { pictureSections } from './picture-sections.js';
import { rankTraffic } from './rank-traffic.js';
import { sideSection } from './side-section.js';
import { styleSheet } from './style-sheet.js';
import { summaryTiles } from './summary-tiles.js';
import { tensorSection } from './tensor-section.js';

/** What a result does not know of itself. */
export interface ReportContext {
  /** The model, as the title has it. */
  readonly model?: string | undefined;
  /** The layouts as they were asked for, such as `tp=4,pp=2`. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** The command that made it. */
  readonly command?: string | undefined;
  /** When it was made; default now. */
  readonly date?: Date | undefined;
}

/**
 * The report of a refit: a single HTML document without scripts, that needs no network.
 *
 * @example
 * ```ts
 * const result = await refit({ model, from: 'tp=4', to: 'tp=2,dp=2', verify: true });
 * await writeFile('refit.html', refitReport(result, { model: model.name, from: 'tp=4', to: 'tp=2,dp=2' }));
 * ```
 */
export function refitReport(result: RefitResult, context: ReportContext = {}): string {
  const { model = 'Refit', from = 'source', to = 'destination' } = context;
  const traffic = rankTraffic(result.plan);
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${model}: ${from} to ${to}</title>
<style>${styleSheet}</style>
</head>
<body>
<header>
<p class="brand">nccl-ext refit</p>
<h1>${breakable(model)}</h1>
<p class="route"><b>${from}</b><span class="arrow" aria-label="to">→</span><b>${to}</b>${badge(result.verified)}</p>
</header>
<main>
${summaryTiles(result)}
${phaseSection(result)}
${sideSection(result.plan, { from, to })}
${pictureSections(result.plan)}
${byteSections(result, traffic)}
${tensorSection(result.plan)}
${factSection(result, context)}
</main>
</body>
</html>
`;
  return page.text;
}

/** Paths may break after a slash, before they break anywhere. */
function breakable(text: string): HtmlValue {
  return text.split(/(?<=\/)/).map((part) => html`${part}<wbr>`);
}

function badge(verified: boolean): Html {
  return verified
    ? html`<span class="badge good">verified</span>`
    : html`<span class="badge warn">not verified</span>`;
}

function factSection(result: RefitResult, { command, date = new Date() }: ReportContext): Html {
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['Plan digest', result.plan.digest],
    ['Version of the weights', String(result.version)],
    ['Values', result.values],
    ['Backend', result.backend],
    ['Command', command],
    ['nccl-ext', version],
    ['Node.js', process.versions.node],
    ['Made', date.toISOString()],
  ];
  const rows = facts.map(([name, value]) =>
    value === undefined ? undefined : html`<dt>${name}</dt><dd><code>${value}</code></dd>\n`,
  );
  return html`<section><h2>Facts</h2><dl class="facts">${rows}</dl></section>`;
}

// SPDX-License-Identifier: Apache-2.0
// Where the time went, as one bar.

import type { RefitResult } from '../refit/refit-result.js';
import { formatMilliseconds, formatPercent } from './format.js';
import { type Html, html } from './html.js';

export function phaseSection(result: RefitResult): Html {
  const phases = [
    { name: 'plan', ms: result.planMs, what: 'who sends what' },
    { name: 'load', ms: result.loadMs, what: 'values into the source layout' },
    { name: 'prepare', ms: result.prepareMs, what: 'agree, bind memory, check bounds' },
    { name: 'pause', ms: result.agreeMs + result.pauseMs, what: 'every rank agrees and stops serving' },
    {
      name: 'move',
      ms: result.moveMs,
      what: result.hashed ? 'all bytes, hashed at both ends' : 'all bytes',
    },
    {
      name: 'publish',
      ms: result.verifyMs + result.resumeMs,
      what: 'every rank has it all and serves again',
    },
    { name: 'check', ms: result.verified ? result.checkMs : 0, what: 'every destination against its source' },
  ].filter(({ ms }) => ms > 0);
  const total = phases.reduce((sum, { ms }) => sum + ms, 0);
  const bars = phases.map(
    ({ name, ms }) =>
      html`<span class="p-${name}" style="flex-grow:${((1000 * ms) / total).toFixed(1)}" title="${name} ${formatMilliseconds(ms)}"></span>`,
  );
  const legend = phases.map(
    ({ name, ms, what }) =>
      html`<li><i class="p-${name}"></i><b>${name}</b> ${formatMilliseconds(ms)} <small>${formatPercent(ms, total)}, ${what}</small></li>`,
  );
  return html`<section><h2>Time <small>${formatMilliseconds(total)} in all</small></h2>
<div class="phases">${bars}</div><ul class="legend">${legend}</ul></section>`;
}

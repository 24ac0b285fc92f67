// SPDX-License-Identifier: Apache-2.0
// What `nccl-ext refit` tells a person: what moved from where to where, how much, how fast, and how it was checked.

import type { RefitResult, RefitTimes } from '@nccl-ext/m2n';
import type { Style } from '../output/style.js';
import { table } from '../output/table.js';
import { bytesText, countText, rateText, ratioText, timeText } from '../output/units.js';
import type { RefitFacts } from './refit-json.js';

export function refitText({ result, input, report, backendReason }: RefitFacts, style: Style): string {
  const { wireBytes, lowerBoundBytes, localBytes, parameterBytes } = result;
  const against =
    lowerBoundBytes === 0
      ? 'nothing has to travel'
      : `lower bound ${bytesText(lowerBoundBytes)}, ${ratioText(wireBytes / lowerBoundBytes)}`;
  // Links belong to the planned topology; the ranks of the embedded backend are threads.
  const way = result.backend === 'embedded' ? ', between threads of this process' : '';
  const rows: string[][] = [
    ['model', `${input.name}: ${countText(result.tensors, 'tensor')}, ${bytesText(parameterBytes)}`],
    ['values', result.values],
    ['from', input.from],
    ['to', input.to],
    ['ranks', `${countText(result.ranks, 'rank')} on the ${result.backend} backend (${backendReason})`],
    ['wire', `${bytesText(wireBytes)} from one rank to another${way} (${against})`],
    ['local', `${bytesText(localBytes)} copied within ranks`],
    ...timeRows(result, style),
    ['verified', verified(result, style)],
    ['weights', `version ${result.version} on every rank`],
  ];
  if (report !== undefined) rows.push(['report', report]);
  const moved = `${bytesText(wireBytes + localBytes)} moved`;
  return `${style.green('done')} ${style.bold(`${moved} from ${input.from} to ${input.to}`)}\n\n${table(
    rows.map(([name, value]) => [style.dim(name!), value!]),
  )}`;
}

/** Times of the phases; of several repeats the median, and the first, which has what only a first one costs. */
function timeRows(result: RefitResult, style: Style): string[][] {
  const { repeats, planMs, loadMs, prepareMs } = result;
  const text = (step: keyof RefitTimes): string => {
    const median = timeText(result[step]);
    return repeats.length === 1
      ? median
      : `${median} (median of ${repeats.length}; the first ${timeText(repeats[0]![step])})`;
  };
  return [
    ['plan', timeText(planMs)],
    ['load', timeText(loadMs)],
    ['prepare', timeText(prepareMs)],
    ['pause', text('pauseMs')],
    ['move', `${text('moveMs')}, ${style.bold(rateText(result.gigabytesPerSecond))}`],
    ['publish', timeText(result.verifyMs + result.resumeMs)],
    ['stall', `${text('stallMs')} from pause to published`],
  ];
}

function verified({ hashed, verified, checkMs }: RefitResult, style: Style): string {
  if (!verified) return style.yellow('no (add --verify)');
  const hashes = hashed ? 'hashes of what was sent and what arrived, then ' : '';
  return `${style.green('yes')}: ${hashes}every destination byte against its source's value (${timeText(checkMs)})`;
}

// SPDX-License-Identifier: Apache-2.0
// Is this Node new enough, and what machine is it on.

import { availableParallelism, cpus, release, totalmem, type } from 'node:os';
import { bytesText, countText } from '../output/units.js';
import { type Check, failed, ok } from './check.js';

/** `engines` is the range of package.json, as in `>=20.19.0`. */
export function nodeCheck(engines: string, version: string = process.versions.node): Check {
  const needed = engines.replace(/^>=\s*/, '');
  const found = `${version} (needs ${needed} or newer)`;
  if (atLeast(version, needed)) return ok('Node.js', found);
  return failed('Node.js', found, `Install Node.js ${needed} or newer: https://nodejs.org.`);
}

export function machineCheck(): Check {
  const model = cpus()[0]?.model.trim() ?? 'unknown processor';
  const cores = countText(availableParallelism(), 'core');
  return ok('Machine', `${model}, ${cores}, ${bytesText(totalmem())} memory, ${type()} ${release()}`);
}

function atLeast(version: string, needed: string): boolean {
  const [have, want] = [version, needed].map((text) => text.split('.').map(Number.parseFloat));
  for (const [index, part] of want!.entries()) {
    const difference = (have![index] ?? 0) - part;
    if (difference !== 0) return difference > 0;
  }
  return true;
}

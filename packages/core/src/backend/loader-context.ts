// SPDX-License-Identifier: Apache-2.0
// Where the loader looks and what it compares with; another context makes it look at other packages and machines.

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { version } from '../version.js';
import { type Machine, thisMachine } from './machine.js';

export interface LoaderContext {
  /** Files from whose place packages are resolved, in order; they need not exist. */
  readonly bases: readonly string[];
  readonly machine: Machine;
  readonly coreVersion: string;
}

/** Packages beside this one first, then those of the working directory (odd layouts: links, global installations). */
export function processContext(): LoaderContext {
  return {
    bases: [fileURLToPath(import.meta.url), join(process.cwd(), 'package.json')],
    machine: thisMachine,
    coreVersion: version,
  };
}

// SPDX-License-Identifier: Apache-2.0
// What `nccl-ext nccl install` tells a person.

import type { Style } from '../output/style.js';
import { table } from '../output/table.js';
import type { Installed } from './install.js';
import type { NcclPin } from './pins.js';

export interface InstallFacts {
  readonly pin: NcclPin;
  readonly installed: Installed;
  /** The variable that makes backends use another one. */
  readonly overriddenBy: string | undefined;
}

export function installText({ pin, installed, overriddenBy }: InstallFacts, style: Style): string {
  const what = style.bold(`NCCL ${pin.version} for CUDA ${pin.cuda}`);
  const first = installed.alreadyThere
    ? `${style.green('already there')} ${what}, whole`
    : `${style.green('installed')} ${what}`;
  const rows = [
    ['library', installed.library],
    ['wheel', pin.file],
    ['sha256', pin.sha256],
  ].map(([name, value]) => [style.dim(name!), value!]);
  const warning =
    overriddenBy === undefined
      ? ''
      : `${style.yellow('note')} ${overriddenBy} is set, and backends look there first.\n`;
  return `${first}\n${table(rows)}${warning}`;
}

// SPDX-License-Identifier: Apache-2.0
// The text of `--help`: what it does, how to call it, options, examples that can be pasted, exit codes.

import type { ArgsDef } from 'citty';
import { type Command, type Group, isGroup } from '../command.js';
import type { ListedCommand } from '../find-command.js';
import type { Style } from './style.js';
import { table } from './table.js';
import { wrap } from './wrap.js';

export interface Usage {
  readonly path: readonly string[];
  readonly node: Command | Group;
  readonly definitions: ArgsDef;
  readonly subCommands: readonly ListedCommand[];
}

/** Width of descriptions, so that lines fit 100 columns. */
const descriptionWidth = 70;

export function usageText({ path, node, definitions, subCommands }: Usage, style: Style): string {
  const full = path.join(' ');
  const usage = isGroup(node) ? ['COMMAND [options]'] : node.usage;
  const sections = [
    `${node.meta.description}\n`,
    section('Usage', usage.map((line) => `  ${full} ${line}\n`).join('')),
    subCommands.length === 0
      ? ''
      : section(
          'Commands',
          table(subCommands.map(({ name, description }) => [style.bold(name), description])),
        ),
    section('Options', table(optionRows(definitions, style))),
    section(
      'Examples',
      node.examples.map(({ what, line }) => `  ${style.dim(`# ${what}`)}\n  ${line}\n`).join(''),
    ),
    section('Exit codes', '  0 done, 1 a check or the run failed, 2 wrong use, 130 interrupted\n'),
  ];
  return sections.filter((text) => text !== '').join('\n');

  function section(title: string, body: string): string {
    return `${style.bold(title)}\n${body}`;
  }
}

function optionRows(definitions: ArgsDef, style: Style): string[][] {
  return Object.entries(definitions).flatMap(([name, definition]) => {
    const alias =
      'alias' in definition && typeof definition.alias === 'string' ? `, -${definition.alias}` : '';
    const hint = definition.type === 'boolean' ? '' : ` ${definition.valueHint ?? 'VALUE'}`;
    const lines = wrap(definition.description ?? '', descriptionWidth);
    return lines.map((line, index) => [index === 0 ? style.bold(`--${name}${alias}`) + hint : '', line]);
  });
}

// SPDX-License-Identifier: Apache-2.0
// Walks the command tree along the words of a command line, and says what was probably meant where a word is not known.

import { NcclExtError } from '@nccl-ext/core';
import { nearestName } from '@nccl-ext/core/extend';
import { type Command, type Group, isGroup } from './command.js';

/** A place in the tree and the arguments that are left for it. */
export interface FoundCommand {
  readonly node: Command | Group;
  /** The words that lead there, as in `nccl-ext plan m2n`. */
  readonly path: readonly string[];
  readonly rest: readonly string[];
}

/**
 * The deepest command that the words of `rawArgs` lead to. Options before a word belong to the command after it.
 *
 * @throws ERR_INVALID_ARGUMENT when a group has no command of that name.
 */
export async function findCommand(root: Group, rawArgs: readonly string[]): Promise<FoundCommand> {
  let node: Command | Group = root;
  const path: string[] = [root.meta.name];
  let rest = rawArgs;
  while (isGroup(node)) {
    const at = rest.findIndex((argument) => !argument.startsWith('-'));
    const word = rest[at];
    if (word === undefined) break;
    const { subCommands }: Group = node;
    if (!Object.hasOwn(subCommands, word)) throw unknownCommand(path, word, Object.keys(subCommands));
    node = await subCommands[word]!();
    path.push(word);
    rest = [...rest.slice(0, at), ...rest.slice(at + 1)];
  }
  return { node, path, rest };
}

/** A command that runs, as `plan m2n` below the root. */
export interface ListedCommand {
  /** The words that lead to it from the group. */
  readonly name: string;
  readonly description: string;
}

/** Every command below `group` that can be run: groups are listed as what they hold. */
export async function listCommands(group: Group): Promise<ListedCommand[]> {
  const lists = Object.entries(group.subCommands).map(async ([name, load]): Promise<ListedCommand[]> => {
    const node = await load();
    if (!isGroup(node)) return [{ name, description: node.meta.description }];
    return (await listCommands(node)).map((one) => ({ ...one, name: `${name} ${one.name}` }));
  });
  return (await Promise.all(lists)).flat();
}

function unknownCommand(path: readonly string[], word: string, names: readonly string[]): NcclExtError {
  const suggestion = nearestName(word, names);
  const full = path.join(' ');
  return new NcclExtError('ERR_INVALID_ARGUMENT', `There is no command \`${full} ${word}\`.`, {
    help:
      suggestion === undefined
        ? `Commands are ${names.map((name) => `\`${full} ${name}\``).join(', ')}; see \`${full} --help\`.`
        : `Did you mean \`${full} ${suggestion}\`?`,
    field: 'command',
    expected: names,
    seen: word,
  });
}

// SPDX-License-Identifier: Apache-2.0
// Every command line in the documents and in the help exists, with every option that it has.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { checkArguments } from './arguments/check-arguments.js';
import { type Command, type Group, isGroup } from './command.js';
import { root } from './commands/root.js';
import { findCommand } from './find-command.js';
import { isScriptCommand } from './run/run-session.js';
import { splitWords } from './run/split-words.js';

const clone = join(fileURLToPath(import.meta.url), '../../../..');
const packages = readdirSync(join(clone, 'packages')).map((name) => `packages/${name}`);
const folders = ['.', 'docs', 'docs/performance', 'native', ...packages];

/** Lines of blocks of code, and pieces of code in sentences. */
function codeOf(document: string): string[] {
  const blocks = [...document.matchAll(/^```\w*\n([\s\S]*?)^```/gm)].map(([, block]) => block!);
  const sentences = document.replace(/^```[\s\S]*?^```/gm, '');
  return [
    ...blocks.flatMap((block) => block.split('\n')),
    ...[...sentences.matchAll(/`([^`\n]+)`/g)].map(([, piece]) => piece!),
  ];
}

/** The words behind `nccl-ext`, where there are any. */
function wordsOf(line: string): string[][] {
  const behind = /^(?:npx (?:-p @nccl-ext\/cli )?)?nccl-ext +([^#]+)/.exec(line)?.[1];
  return behind === undefined ? [] : [behind.match(/'[^']*'|\S+/g)!.map((word) => word.replaceAll("'", ''))];
}

async function examplesBelow(node: Command | Group): Promise<string[][]> {
  const own = node.examples.flatMap(({ line }) => wordsOf(line));
  if (!isGroup(node)) return own;
  const below = Object.values(node.subCommands).map(async (load) => examplesBelow(await load()));
  return [...own, ...(await Promise.all(below)).flat()];
}

async function requireCommand(words: readonly string[]): Promise<void> {
  const { node, path, rest } = await findCommand(root, words);
  if (isGroup(node)) return;
  const { own, words: behind } = isScriptCommand(node)
    ? splitWords(node.args, rest)
    : { own: rest, words: [] };
  checkArguments(path.join(' '), node.args, own);
  if (behind[0] === 'nccl-ext') await requireCommand(behind.slice(1));
}

const documented = folders
  .flatMap((folder) => readdirSync(join(clone, folder)).map((name) => join(clone, folder, name)))
  .filter((file) => file.endsWith('.md') && !file.endsWith('CHANGELOG.md'))
  .flatMap((file) => codeOf(readFileSync(file, 'utf8')))
  .flatMap(wordsOf);
const commands = new Map(
  [...documented, ...(await examplesBelow(root))].map((words) => [words.join(' '), words]),
);

it('finds them', () => {
  expect([...commands.keys()]).toContain('run -n 8 nccl-ext bench m2n --backend cuda');
  expect([...commands.keys()]).toContain('doctor');
  expect(commands.size).toBeGreaterThan(50);
});

it.each([...commands])('nccl-ext %s', async (_, words) => {
  await requireCommand(words);
});

it('refuses what is no command and no option', async () => {
  await expect(requireCommand(['refti'])).rejects.toThrow('There is no command');
  await expect(requireCommand(['run', '-n', '2', 'nccl-ext', 'bench', 'm2n', '--smms', '2'])).rejects.toThrow(
    'has no option --smms',
  );
});

// SPDX-License-Identifier: Apache-2.0
// One command line from words to exit code: find the command, check its arguments, run it, print one result.

import { NcclExtError, version } from '@nccl-ext/core';
import { type ArgsDef, runCommand } from 'citty';
import { Arguments } from './arguments/arguments.js';
import { checkArguments } from './arguments/check-arguments.js';
import { type Command, commonArguments, type Group, isGroup, type Outcome } from './command.js';
import { root } from './commands/root.js';
import { exitCodeOf, exitDone, exitFailed } from './exit-code.js';
import { type FoundCommand, findCommand, listCommands } from './find-command.js';
import { commandLine } from './output/command-line.js';
import { errorJson, errorText } from './output/error-output.js';
import { ProgressLine } from './output/progress-line.js';
import { styleFor } from './output/style.js';
import { usageText } from './output/usage.js';
import { isScriptCommand, type RunSession } from './run/run-session.js';
import { splitWords } from './run/split-words.js';

/** A stream to write text to; `isTTY` as on `process.stdout`. */
export interface Output {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** The surroundings of a command. */
export interface Surroundings {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Aborted: the command cleans up and ends. */
  readonly signal: AbortSignal;
}

const rootArguments: ArgsDef = {
  ...commonArguments,
  version: { type: 'boolean', alias: 'v', description: 'Show the version' },
};

/**
 * Runs `nccl-ext` with these arguments and returns the exit code: 0 done, 1 failed, 2 wrong use, 128 + n after signal n. Never throws.
 *
 * @example
 * ```ts
 * const { stdout, stderr, env } = process;
 * const signal = new AbortController().signal;
 * const code = await runCli(['doctor', '--json'], { stdout, stderr, env, signal });
 * ```
 */
export async function runCli(rawArgs: readonly string[], surroundings: Surroundings): Promise<number> {
  const { stdout, stderr, env } = surroundings;
  let json = rawArgs.includes('--json');
  const progress = new ProgressLine(stderr);
  try {
    const found = await findCommand(root, rawArgs);
    // What follows the script of `run` is the script's, `--json` too.
    const { own, words } = isScriptCommand(found.node)
      ? splitWords(found.node.args, found.rest)
      : { own: found.rest, words: [] };
    json = own.includes('--json');
    const outcome = await execute({ ...found, rest: own }, words, surroundings, progress);
    progress.clear();
    if (!json) stdout.write(outcome.text(styleFor(stdout, env)));
    else if (outcome.json !== undefined) stdout.write(`${JSON.stringify(outcome.json)}\n`);
    return outcome.ok ? exitDone : exitFailed;
  } catch (error) {
    progress.clear();
    if (json) stdout.write(`${JSON.stringify(errorJson(error))}\n`);
    else stderr.write(errorText(error, styleFor(stderr, env)));
    return exitCodeOf(error);
  }
}

async function execute(
  { node, path, rest }: FoundCommand,
  words: readonly string[],
  surroundings: Surroundings,
  progress: ProgressLine,
): Promise<Outcome> {
  const definitions = isGroup(node) ? (node === root ? rootArguments : commonArguments) : node.args;
  // Help comes first: whoever asks for it need not have the rest right.
  if (rest.includes('--help') || rest.includes('-h')) return help(node, path, definitions);
  checkArguments(path.join(' '), definitions, rest);
  if (!isGroup(node)) return runLeaf(node, path, rest, words, surroundings, progress);
  if (rest.includes('--version') || rest.includes('-v')) {
    return { ok: true, json: { ok: true, version }, text: () => `${version}\n` };
  }
  const names = (await listCommands(node)).map(({ name }) => name);
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `\`${path.join(' ')}\` needs a command.`, {
    help: `Commands are ${names.join(', ')}; see \`${path.join(' ')} --help\`.`,
    field: 'command',
  });
}

async function runLeaf(
  command: Command,
  path: readonly string[],
  rawArgs: readonly string[],
  words: readonly string[],
  { env, signal, stdout, stderr }: Surroundings,
  progress: ProgressLine,
): Promise<Outcome> {
  signal.throwIfAborted();
  const read = new Arguments(command.args, rawArgs);
  const data: RunSession = {
    arguments: read,
    commandLine: commandLine([...path, ...rawArgs, ...words]),
    env,
    signal,
    progress,
    words,
    stdout,
    stderr,
  };
  const { result } = await runCommand(command, { rawArgs: [...rawArgs], data });
  signal.throwIfAborted();
  return result as Outcome;
}

async function help(node: Command | Group, path: readonly string[], definitions: ArgsDef): Promise<Outcome> {
  const subCommands = isGroup(node) ? await listCommands(node) : [];
  const usage = { path, node, definitions, subCommands };
  return {
    ok: true,
    json: { ok: true, command: path.join(' '), help: usageText(usage, styleFor({}, {})) },
    text: (style) => usageText(usage, style),
  };
}

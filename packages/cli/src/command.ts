// SPDX-License-Identifier: Apache-2.0
// What a command of `nccl-ext` is: a citty command that also has examples, and returns what it found instead of printing it.

import type { ArgsDef, CommandContext as CittyContext, CommandDef } from 'citty';
import type { Arguments } from './arguments/arguments.js';
import type { ProgressLine } from './output/progress-line.js';
import type { Style } from './output/style.js';

/** A line of `--help` that can be pasted. */
interface Example {
  readonly what: string;
  readonly line: string;
}

/** What a command found. Printed in one place, as JSON or as text, so that `--json` stays pure. */
export interface Outcome {
  /** False: a check failed, exit code 1. */
  readonly ok: boolean;
  /** Undefined: another process of the same run says it. */
  readonly json: Readonly<Record<string, unknown>> | undefined;
  /** For people; styled for stdout. */
  text(style: Style): string;
}

/** What a command gets. */
export interface Session {
  readonly arguments: Arguments;
  /** The whole command line, for reports. */
  readonly commandLine: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Aborts on Ctrl-C; its reason is what the command must reject with. */
  readonly signal: AbortSignal;
  readonly progress: ProgressLine;
}

/** A leaf of the command tree. */
export interface Command extends CommandDef {
  readonly meta: { readonly name: string; readonly description: string };
  /** The arguments as `--help` sums them up; a line per way to call it. */
  readonly usage: readonly string[];
  readonly args: ArgsDef;
  readonly examples: readonly Example[];
  readonly run: (context: CittyContext) => Promise<Outcome>;
}

/** A command that only holds others; they are loaded when they are named. */
export interface Group extends CommandDef {
  readonly meta: { readonly name: string; readonly description: string };
  readonly examples: readonly Example[];
  readonly subCommands: Readonly<Record<string, () => Promise<Command | Group>>>;
}

/** What {@link defineLeaf} takes. */
export interface LeafDefinition extends Omit<Command, 'run' | 'args'> {
  readonly args?: ArgsDef;
  run(session: Session): Promise<Outcome>;
}

/** Options of every command. */
export const commonArguments: ArgsDef = {
  json: { type: 'boolean', description: 'Print one JSON object instead of text' },
  help: { type: 'boolean', alias: 'h', description: 'Show this help' },
};

/** A leaf that reads its arguments and its surroundings from one {@link Session}. */
export function defineLeaf(definition: LeafDefinition): Command {
  const { run, args = {}, ...rest } = definition;
  return { ...rest, args: { ...args, ...commonArguments }, run: ({ data }) => run(data as Session) };
}

export function isGroup(node: Command | Group): node is Group {
  return 'subCommands' in node && node.subCommands !== undefined;
}

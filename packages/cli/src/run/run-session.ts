// SPDX-License-Identifier: Apache-2.0
// `run` passes on words and output that are not its own, which no other command does.

import type { Command, Session } from '../command.js';

/** A stream to write text to; `isTTY` as on `process.stdout`. */
export interface TextOutput {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** What a command that starts a script gets. */
export interface RunSession extends Session {
  /** The script and its arguments. */
  readonly words: readonly string[];
  readonly stdout: TextOutput;
  readonly stderr: TextOutput;
}

/** A command whose arguments end where a script begins; it runs in a {@link RunSession}. */
export interface ScriptCommand extends Command {
  readonly takesScript: true;
}

/** Whether `node`, a command or a group, takes a script. */
export function isScriptCommand(node: object): node is ScriptCommand {
  return 'takesScript' in node;
}

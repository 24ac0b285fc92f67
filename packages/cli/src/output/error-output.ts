// SPDX-License-Identifier: Apache-2.0
// How a failure reads: what is wrong, then what to do about it. No stack traces; the same facts as JSON for programs.

import { NcclExtError } from '@nccl-ext/core';
import { Interruption } from '../interruption.js';
import type { Style } from './style.js';

/** Lines for stderr. */
export function errorText(error: unknown, style: Style): string {
  if (error instanceof Interruption) return `${style.yellow('interrupted')}: nothing was left behind\n`;
  const { code, message, help } = factsOf(error);
  const lines = [`${style.bold(style.red('error'))} ${style.dim(code)} ${message}`];
  if (help !== undefined) lines.push(...help.split('\n').map((line) => `  ${line}`));
  return `${lines.join('\n')}\n`;
}

/** The object for stdout with `--json`. */
export function errorJson(error: unknown): { readonly ok: false; readonly error: Record<string, unknown> } {
  const { code, message, help, ...rest } = factsOf(error);
  return { ok: false, error: { code, message, ...(help === undefined ? {} : { help }), ...rest } };
}

interface ErrorFacts extends Record<string, unknown> {
  readonly code: string;
  /** Without the help. */
  readonly message: string;
  readonly help?: string;
}

function factsOf(error: unknown): ErrorFacts {
  if (error instanceof Interruption) {
    return { code: 'ERR_ABORTED', message: error.message, signal: error.signalName };
  }
  if (NcclExtError.is(error)) {
    const { name: _, ...facts } = error.toJSON();
    const help = error.help;
    const message =
      help !== undefined && error.message.endsWith(`\n${help}`)
        ? error.message.slice(0, -help.length - 1)
        : error.message;
    return { ...plain(facts), code: error.code, message };
  }
  const message = error instanceof Error ? error.message : String(error);
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return { code: typeof code === 'string' ? code : 'ERR_INTERNAL', message };
}

/** JSON knows no bigint, and error fields may hold one (an epoch, a hash). */
function plain(facts: Record<string, unknown>): Record<string, unknown> {
  return JSON.parse(
    JSON.stringify(facts, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value)),
  );
}

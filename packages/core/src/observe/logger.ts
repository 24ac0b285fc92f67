// SPDX-License-Identifier: Apache-2.0
// What nccl-ext tells a person while it runs: one small interface that any logger of an application fits.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { describe } from '../mesh/require-integer.js';

/** Named values beside a message. */
export type LogFields = Readonly<Record<string, unknown>>;

/** A sink of messages. `console` fits as it is, and a pino-like logger with a line of code. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

/** Quietest first. A level lets through messages of itself and of the levels before it. */
export const logLevels = ['silent', 'error', 'warn', 'info', 'debug'] as const;

/** One of {@link logLevels}. */
export type LogLevel = (typeof logLevels)[number];

/**
 * The logger to use: `logger`, or lines on stderr, either of them limited to `level`.
 *
 * @example
 * ```ts
 * const log = openLogger('info');
 * log.info('plan ready', { tensors: 311, planMs: 12 }); // nccl-ext info: plan ready tensors=311 planMs=12
 * log.debug('not shown');
 * ```
 */
export function openLogger(level: LogLevel, logger: Logger = stderrLogger): Logger {
  requireLogger(logger);
  const allowed = logLevels.indexOf(level);
  const method = (name: keyof Logger): Logger[typeof name] =>
    logLevels.indexOf(name) <= allowed ? (message, fields) => logger[name](message, fields) : discard;
  return { debug: method('debug'), info: method('info'), warn: method('warn'), error: method('error') };
}

function requireLogger(logger: unknown): void {
  for (const name of ['debug', 'info', 'warn', 'error'] as const) {
    if (typeof (logger as Logger | null)?.[name] === 'function') continue;
    throw new NcclExtError(
      'ERR_INVALID_ARGUMENT',
      `logger must have the methods debug, info, warn and error; ${name} is missing in ${describe(logger)}.`,
      { field: 'logger', help: 'Pass console or an object with these four methods.' },
    );
  }
}

function discard(): void {}

const stderrLogger: Logger = {
  debug: (message, fields) => writeLine('debug', message, fields),
  info: (message, fields) => writeLine('info', message, fields),
  warn: (message, fields) => writeLine('warn', message, fields),
  error: (message, fields) => writeLine('error', message, fields),
};

function writeLine(level: LogLevel, message: string, fields: LogFields = {}): void {
  const values = Object.entries(fields).map(([name, value]) => ` ${name}=${fieldText(value)}`);
  process.stderr.write(`nccl-ext ${level}: ${message}${values.join('')}\n`);
}

// One line per message, and never a throw out of a log call: not every value has JSON text.
function fieldText(value: unknown): string {
  if (value instanceof Error) return JSON.stringify(value.message);
  if (typeof value === 'string') return /^[\w./:@+-]+$/.test(value) ? value : JSON.stringify(value);
  if (typeof value !== 'object' || value === null) return String(value);
  try {
    return JSON.stringify(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

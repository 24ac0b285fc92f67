// SPDX-License-Identifier: Apache-2.0
// Levels let the right messages through, and the default sink writes one line per message to stderr.

import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Logger, logLevels, openLogger } from './logger.js';

function recorder(): Logger & { lines: string[] } {
  const lines: string[] = [];
  const add = (level: string) => (message: string, fields?: object) => {
    lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  };
  return { lines, debug: add('debug'), info: add('info'), warn: add('warn'), error: add('error') };
}

describe('openLogger', () => {
  it.each(logLevels.map((level, allowed) => [level, allowed] as const))(
    '%s lets %i levels through',
    (level, allowed) => {
      const sink = recorder();
      const log = openLogger(level, sink);
      log.error('e', { a: 1 });
      log.warn('w', { a: 1 });
      log.info('i', { a: 1 });
      log.debug('d', { a: 1 });
      const all = ['error e {"a":1}', 'warn w {"a":1}', 'info i {"a":1}', 'debug d {"a":1}'];
      expect(sink.lines).toEqual(all.slice(0, allowed));
    },
  );

  it('keeps the `this` of a class-based logger', () => {
    class Counter implements Logger {
      calls = 0;
      debug(): void {
        this.calls += 1;
      }
      info(): void {
        this.calls += 1;
      }
      warn(): void {
        this.calls += 1;
      }
      error(): void {
        this.calls += 1;
      }
    }
    const counter = new Counter();
    openLogger('debug', counter).info('x');
    expect(counter.calls).toBe(1);
  });
});

describe('the stderr logger', () => {
  afterEach(() => vi.restoreAllMocks());

  it('writes level, message and fields on one line', () => {
    const written: unknown[] = [];
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => written.push(text) > 0);
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    openLogger('info').warn('slow peer', {
      rank: 3,
      path: '/a/b.json',
      text: 'two words\nand a line',
      bytes: 2n ** 40n,
      list: [1, 2],
      none: undefined,
      cause: new Error('no "luck"'),
      cycle,
    });
    openLogger('info').debug('hidden');
    expect(written).toEqual([
      'nccl-ext warn: slow peer rank=3 path=/a/b.json text="two words\\nand a line" bytes=1099511627776 ' +
        'list=[1,2] none=undefined cause="no \\"luck\\"" cycle=[object Object]\n',
    ]);
  });
});

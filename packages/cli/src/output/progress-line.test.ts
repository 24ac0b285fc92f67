// SPDX-License-Identifier: Apache-2.0
// Progress is one line on a terminal, and nothing at all elsewhere.

import { describe, expect, it } from 'vitest';
import { ProgressLine, progressText } from './progress-line.js';

function terminal(isTTY: boolean): {
  isTTY: boolean;
  columns: number;
  written: string;
  write(text: string): void;
} {
  return {
    isTTY,
    columns: 60,
    written: '',
    write(text) {
      this.written += text;
    },
  };
}

describe('progressText', () => {
  it('says bytes, rate and time left', () => {
    expect(progressText({ phase: 'move', bytes: 100e6, totalBytes: 400e6 }, 50)).toBe(
      'move   25 %  100 MB of 400 MB  2.00 GB/s  150 ms left',
    );
  });

  it('claims no rate before there is one', () => {
    expect(progressText({ phase: 'load', bytes: 0, totalBytes: 1000 }, 5)).toBe(
      'load    0 %  0 B of 1.00 kB',
    );
    expect(progressText({ phase: 'plan', bytes: 0, totalBytes: 0 }, 5)).toBe('plan');
  });
});

describe('ProgressLine', () => {
  it('rewrites its line, measures each phase by itself, and erases itself', () => {
    const target = terminal(true);
    let now = 0;
    const line = new ProgressLine(target, () => now);
    line.update({ phase: 'load', bytes: 0, totalBytes: 1000 });
    now = 1000;
    line.update({ phase: 'move', bytes: 0, totalBytes: 2000 });
    now = 1001;
    line.update({ phase: 'move', bytes: 1000, totalBytes: 2000 });
    line.clear();
    const [first, ...lines] = target.written.split('\r\u001b[K');
    expect(first).toBe('');
    expect(lines).toEqual([
      'load    0 %  0 B of 1.00 kB',
      'move    0 %  0 B of 2.00 kB',
      'move   50 %  1.00 kB of 2.00 kB  1.00 MB/s  1.00 ms left',
      '',
    ]);
  });

  it('never wraps', () => {
    const target = terminal(true);
    new ProgressLine(target).say('x'.repeat(200));
    expect(target.written.replace('\r\u001b[K', '')).toHaveLength(59);
  });

  it('writes nothing when nobody looks on', () => {
    const target = terminal(false);
    const line = new ProgressLine(target);
    line.say('x');
    line.update({ phase: 'load', bytes: 1, totalBytes: 2 });
    line.clear();
    expect(target.written).toBe('');
  });
});

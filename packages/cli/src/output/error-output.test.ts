// SPDX-License-Identifier: Apache-2.0
// Errors say message and help once each, in text and in JSON, and show no stack.

import { NcclExtError } from '@nccl-ext/core';
import { describe, expect, it } from 'vitest';
import { Interruption } from '../interruption.js';
import { errorJson, errorText } from './error-output.js';
import { styleFor } from './style.js';

const plain = styleFor({}, {});
const error = new NcclExtError('ERR_PARALLELISM', 'ranks 7 is no multiple of tp 2', {
  help: 'first step\nsecond step',
  field: 'ranks',
  seen: 7n,
});

describe('errorText', () => {
  it('has the code, the message and the help, each once', () => {
    expect(errorText(error, plain)).toBe(
      'error ERR_PARALLELISM ranks 7 is no multiple of tp 2\n  first step\n  second step\n',
    );
  });

  it('gives system errors their own code, and anything else ERR_INTERNAL', () => {
    const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    expect(errorText(full, plain)).toBe('error ENOSPC ENOSPC: no space left on device\n');
    expect(errorText(new TypeError('x is not a function'), plain)).toBe(
      'error ERR_INTERNAL x is not a function\n',
    );
    expect(errorText('text', plain)).toBe('error ERR_INTERNAL text\n');
  });

  it('says that an interruption left nothing behind', () => {
    expect(errorText(new Interruption('SIGINT'), plain)).toBe('interrupted: nothing was left behind\n');
  });
});

describe('errorJson', () => {
  it('keeps every fact, bigints as text', () => {
    expect(errorJson(error)).toEqual({
      ok: false,
      error: {
        code: 'ERR_PARALLELISM',
        message: 'ranks 7 is no multiple of tp 2',
        help: 'first step\nsecond step',
        field: 'ranks',
        seen: '7',
      },
    });
  });

  it('knows interruptions', () => {
    expect(errorJson(new Interruption('SIGTERM'))).toEqual({
      ok: false,
      error: { code: 'ERR_ABORTED', message: 'interrupted by SIGTERM', signal: 'SIGTERM' },
    });
  });
});

describe('styleFor', () => {
  it('colours on a terminal only, and never against NO_COLOR or a dumb terminal', () => {
    expect(styleFor({ isTTY: true }, {}).red('x')).toBe('\u001b[31mx\u001b[39m');
    expect(styleFor({ isTTY: false }, {}).red('x')).toBe('x');
    expect(styleFor({}, {}).red('x')).toBe('x');
    expect(styleFor({ isTTY: true }, { NO_COLOR: '1' }).red('x')).toBe('x');
    expect(styleFor({ isTTY: true }, { NO_COLOR: '' }).red('x')).toBe('\u001b[31mx\u001b[39m');
    expect(styleFor({ isTTY: true }, { TERM: 'dumb' }).red('x')).toBe('x');
  });
});

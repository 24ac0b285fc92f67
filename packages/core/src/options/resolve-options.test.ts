// SPDX-License-Identifier: Apache-2.0
// Precedence, refusal of every wrong value, suggestions, and values that no caller can change.

import { describe, expect, it } from 'vitest';
import { type OptionName, optionNames, optionTable } from './option-table.js';
import { type ExplicitOptions, resolveOptions } from './resolve-options.js';

describe('resolveOptions', () => {
  it('has documented defaults', () => {
    const { values, origins, warnings } = resolveOptions({}, {});
    expect(values).toEqual({
      backend: 'auto',
      timeoutMs: 30_000,
      workers: 0,
      sms: 0,
      address: undefined,
      port: undefined,
      token: undefined,
      ncclLibrary: undefined,
      ncclHome: undefined,
      logLevel: 'warn',
      planCacheEntries: 64,
      transferPath: 'auto',
    });
    expect(Object.keys(origins)).toEqual(optionNames);
    expect(new Set(Object.values(origins))).toEqual(new Set(['default']));
    expect(warnings).toEqual([]);
  });

  it('prefers the call to the environment and the environment to the default', () => {
    const env = { NCCL_EXT_TIMEOUT_MS: '500', NCCL_EXT_WORKERS: '3', NCCL_EXT_LOG_LEVEL: '' };
    const { values, origins } = resolveOptions({ workers: 2, timeoutMs: undefined }, env);
    expect(values).toMatchObject({ workers: 2, timeoutMs: 500, logLevel: 'warn' });
    expect(origins).toMatchObject({ workers: 'call', timeoutMs: 'environment', logLevel: 'default' });
  });

  it.each([
    ['backend', 'cuda13', 'cuda13'],
    ['timeoutMs', '2147483647', 2147483647],
    ['workers', '256', 256],
    ['sms', '28', 28],
    ['sms', '28,28,0,4', [28, 28, 0, 4]],
    ['address', 'node-0', 'node-0'],
    ['port', '29501', 29501],
    ['token', 'hunter2', 'hunter2'],
    ['ncclLibrary', '/x/libnccl.so.2', '/x/libnccl.so.2'],
    ['ncclHome', '/x', '/x'],
    ['logLevel', 'debug', 'debug'],
    ['planCacheEntries', '0', 0],
    ['transferPath', 'sendrecv', 'sendrecv'],
  ] as const)('reads %s from its variable', (name, text, value) => {
    expect(resolveOptions({}, { [optionTable[name].variable]: text }).values[name]).toEqual(value);
    expect(resolveOptions({ [name]: value }, {}).values[name]).toEqual(value);
  });

  it.each([
    ['backend', 'CUDA'],
    ['backend', 'toString'],
    ['timeoutMs', '0'],
    ['timeoutMs', '2147483648'],
    ['timeoutMs', '1e3'],
    ['timeoutMs', '10s'],
    ['workers', '-1'],
    ['workers', '257'],
    ['workers', ' 2'],
    ['sms', '1025'],
    ['sms', '28,'],
    ['sms', '28, 4'],
    ['sms', '28,4.5'],
    ['sms', ','],
    ['workers', '1.5'],
    ['port', '65536'],
    ['port', '0'],
    ['logLevel', 'verbose'],
    ['planCacheEntries', '65537'],
    ['transferPath', 'direct'],
  ] as const)('refuses %s from the text %j, naming variable, value and what is allowed', (name, text) => {
    const { variable, kind } = optionTable[name as OptionName];
    expect(() => resolveOptions({}, { [variable]: text })).toThrowError(
      expect.objectContaining({
        code: 'ERR_INVALID_ARGUMENT',
        message: `Environment variable ${variable} is ${JSON.stringify(text)}; it must be ${kind.allowed}.`,
        field: variable,
        seen: text,
      }),
    );
  });

  it.each([
    ['backend', 'gpu'],
    ['timeoutMs', '500'],
    ['timeoutMs', Number.NaN],
    ['workers', 1.5],
    ['sms', -1],
    ['sms', '28,4'],
    ['sms', []],
    ['sms', [28, 1.5]],
    ['sms', [28, 1025]],
    ['sms', [28, '4']],
    ['sms', new Array(2)],
    ['port', 0],
    ['address', ''],
    ['ncclHome', 3],
    ['logLevel', null],
  ])('refuses the option %s = %j', (name, value) => {
    expect(() => resolveOptions({ [name]: value } as ExplicitOptions, {})).toThrowError(
      expect.objectContaining({
        code: 'ERR_INVALID_ARGUMENT',
        message: expect.stringMatching(new RegExp(`^Option ${name} is .*; it must be `)),
        field: name,
      }),
    );
  });

  it('does not show a secret', () => {
    const secret = 'x'.repeat(513);
    for (const [given, env] of [
      [{ token: secret }, {}],
      [{}, { NCCL_EXT_TOKEN: secret }],
      [{ token: { x: secret } }, {}],
    ] as unknown as [ExplicitOptions, Record<string, string>][]) {
      let error: unknown;
      try {
        resolveOptions(given, env);
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toMatchObject({
        code: 'ERR_INVALID_ARGUMENT',
        message: expect.stringMatching(/has a wrong value .*; it must be a text of 1 to 512 characters\.$/),
        seen: undefined,
      });
      expect(JSON.stringify(error)).not.toContain('xxx');
    }
  });

  it('refuses options that do not exist and says which was meant', () => {
    const call = (options: object) => () => resolveOptions(options as ExplicitOptions, {});
    expect(call({ timeoutms: 5 })).toThrowError('There is no option timeoutms.\nDid you mean timeoutMs?');
    expect(call({ colour: 'red' })).toThrowError(/There is no option colour\.\nOptions are backend, /);
    expect(call({ toString: 1 })).toThrowError(expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT' }));
  });

  it('warns of unknown variables that look like ours', () => {
    const env = { NCCL_EXT_TIMEOUT: '5', NCCL_EXT_XYZZY_PLUGH: '1', NCCL_DEBUG: 'INFO', HOME: '/' };
    expect(resolveOptions({}, env).warnings).toEqual([
      {
        variable: 'NCCL_EXT_TIMEOUT',
        suggestion: 'NCCL_EXT_TIMEOUT_MS',
        message: 'Environment variable NCCL_EXT_TIMEOUT is unknown: did you mean NCCL_EXT_TIMEOUT_MS?',
      },
      {
        variable: 'NCCL_EXT_XYZZY_PLUGH',
        suggestion: undefined,
        message: 'Environment variable NCCL_EXT_XYZZY_PLUGH is unknown: it has no effect',
      },
    ]);
  });

  it('gives values that cannot be changed', () => {
    const { values, origins } = resolveOptions({}, {});
    expect(Object.isFrozen(values)).toBe(true);
    expect(Object.isFrozen(origins)).toBe(true);
  });
});

describe('optionTable', () => {
  it('has a variable of its own for each option, and defaults of the right kind', () => {
    const specs = optionNames.map((name) => optionTable[name]);
    expect(new Set(specs.map((spec) => spec.variable)).size).toBe(specs.length);
    for (const spec of specs) {
      expect(spec.default === undefined ? spec.defaultText : spec.kind.is(spec.default)).toBeTruthy();
    }
  });
});

// SPDX-License-Identifier: Apache-2.0
// Driver versions in the texts that drivers write, version order, and glibc as the system itself reports it.

import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { isAbsent } from './discover.js';
import { atLeast } from './dotted-version.js';
import { parseDriverVersion, thisMachine } from './machine.js';

describe('parseDriverVersion', () => {
  it.each([
    [
      'NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024\nGCC version:  gcc version 12.2.0\n',
      '550.90.07',
    ],
    [
      'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build  (root@host)  Thu\nGCC version: gcc 13.3.0\n',
      '580.159.03',
    ],
    ['NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  575.51  Release Build\n', '575.51'],
    ['GCC version:  gcc version 12.2.0\n', undefined],
    ['', undefined],
  ])('%#', (text, expected) => {
    expect(parseDriverVersion(text)).toBe(expected);
  });
});

it.each([
  ['2.36', '2.34', true],
  ['2.34', '2.34', true],
  ['2.4', '2.34', false],
  ['580.159.03', '580', true],
  ['579.99', '580', false],
  ['580', '580.65', false],
  ['3', '2.99.1', true],
])('atLeast(%s, %s) is %s', (version, floor, expected) => {
  expect(atLeast(version, floor)).toBe(expected);
});

// getconf is part of glibc.
it.runIf(process.platform === 'linux' && thisMachine.glibc() !== undefined)(
  'glibc() is what getconf prints',
  () => {
    expect(`glibc ${thisMachine.glibc()}\n`).toBe(
      execFileSync('getconf', ['GNU_LIBC_VERSION'], { encoding: 'utf8' }),
    );
  },
);

it('driver() is a version or undefined', () => {
  expect(thisMachine.driver() ?? '0').toMatch(/^\d+(\.\d+)*$/);
});

describe('isAbsent', () => {
  it.each([
    [
      {
        code: 'MODULE_NOT_FOUND',
        message: "Cannot find module '@nccl-ext/cuda12/package.json'\nRequire stack:",
      },
      true,
    ],
    [{ code: 'MODULE_NOT_FOUND', message: "Cannot find module '/a/@nccl-ext/cuda12/gone.json'" }, false],
    [{ code: 'MODULE_NOT_FOUND', message: "Cannot find module '@nccl-ext/cuda13/package.json'" }, false],
    [
      { code: 'ERR_PACKAGE_PATH_NOT_EXPORTED', message: "Package subpath './package.json' is not defined" },
      false,
    ],
    [
      {
        code: 'MODULE_NOT_FOUND',
        pnpCode: 'MISSING_PEER_DEPENDENCY',
        message: '@nccl-ext/core tried to access',
      },
      true,
    ],
    [
      { code: 'MODULE_NOT_FOUND', pnpCode: 'QUALIFIED_PATH_RESOLUTION_FAILED', message: 'Qualified path' },
      false,
    ],
    [new SyntaxError('Unexpected end of JSON input'), false],
  ])('%#', (problem, expected) => {
    expect(isAbsent(problem, 'cuda12')).toBe(expected);
  });
});

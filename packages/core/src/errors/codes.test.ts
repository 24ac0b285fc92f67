// SPDX-License-Identifier: Apache-2.0
// Codes are a promise to programs and to native code: numbers stay, and every code is explained.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { errorCodeOf, errorNumbers } from './codes.js';

describe('errorNumbers', () => {
  it('gives every code a number of its own, and 0 to none', () => {
    const numbers = Object.values(errorNumbers);
    expect(new Set(numbers).size).toBe(numbers.length);
    expect(numbers).not.toContain(0);
  });

  it('leads back from numbers to codes; an unknown number is an internal error', () => {
    for (const [code, number] of Object.entries(errorNumbers)) expect(errorCodeOf(number)).toBe(code);
    expect(errorCodeOf(9999)).toBe('ERR_INTERNAL');
  });

  it('is explained in the troubleshooting page, code by code', () => {
    const page = readFileSync(new URL('../../../../docs/troubleshooting.md', import.meta.url), 'utf8');
    expect(Object.keys(errorNumbers).filter((code) => !page.includes(`\`${code}\``))).toEqual([]);
  });
});

// SPDX-License-Identifier: Apache-2.0
// Where GPU packages are looked for, and which place decides.

import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { version as coreVersion } from '../version.js';
import { project } from './fake-packages.test-util.js';
import { loadBackend } from './load.js';
import { type LoaderContext, processContext } from './loader-context.js';

describe('where packages are looked for', () => {
  it('the first base that has any decides', async () => {
    const machine = { driver: () => undefined, glibc: () => '2.36' };
    const [empty, twelve, thirteen] = [project({}), project({ cuda12: {} }), project({ cuda13: {} })];
    const where = (...bases: string[]): LoaderContext => ({ bases, machine, coreVersion: '0.2.0' });
    expect(await loadBackend('cuda', where(empty, thirteen))).toMatchObject({ kind: 'cuda13' });
    expect(await loadBackend('cuda', where(twelve, thirteen))).toMatchObject({ kind: 'cuda12' });
  });

  it('by default beside core, then in the working directory', () => {
    const { bases, coreVersion: compared } = processContext();
    expect(bases).toEqual([expect.stringContaining('loader-context'), join(process.cwd(), 'package.json')]);
    expect(compared).toBe(coreVersion);
  });
});

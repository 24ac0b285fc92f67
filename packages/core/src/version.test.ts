// SPDX-License-Identifier: Apache-2.0
// The constant must follow package.json, which the release tool changes.

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { version } from './version.js';

it('equals the version of package.json', () => {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  expect(version).toBe(manifest.version);
});

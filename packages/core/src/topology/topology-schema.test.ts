// SPDX-License-Identifier: Apache-2.0
// The committed JSON schema is the one that the zod schema gives.

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { topologyJsonSchema } from './topology-schema.js';

it('equals packages/core/schemas/topology.schema.json', () => {
  const committed = readFileSync(new URL('../../schemas/topology.schema.json', import.meta.url), 'utf8');
  expect(committed).toBe(topologyJsonSchema());
});

// SPDX-License-Identifier: Apache-2.0
// A script is a file, or this command itself by its name.

import { expect, it } from 'vitest';
import { findScript } from './find-script.js';

it('finds files, the command itself, and says where it looked', async () => {
  expect(await findScript('package.json')).toMatch(/^\/.*package\.json$/);
  expect(await findScript('nccl-ext')).toMatch(/cli\/bin\/nccl-ext\.mjs$/);
  await expect(findScript('nccl-ex')).rejects.toMatchObject({
    code: 'ERR_INVALID_ARGUMENT',
    help: expect.stringContaining('/nccl-ex'),
  });
  await expect(findScript(undefined)).rejects.toMatchObject({ field: 'script' });
});

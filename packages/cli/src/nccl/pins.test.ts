// SPDX-License-Identifier: Apache-2.0
// The pins of the command are those that the native code is built and tested with.

import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { cudaMajors, ncclPins } from './pins.js';

it.each(cudaMajors)('pins what third_party/pins.json pins for CUDA %i', async (cuda) => {
  const text = await readFile(new URL('../../../../third_party/pins.json', import.meta.url), 'utf8');
  const { version, files } = JSON.parse(text)[`nccl-cu${cuda}`];
  const { cuda: own, ...pin } = ncclPins[cuda];
  expect(own).toBe(cuda);
  expect([pin]).toEqual(files);
  expect(pin.version).toBe(version);
});

// SPDX-License-Identifier: Apache-2.0
// A misspelt option would be ignored: `verfiy: true` would leave unverified what its caller believes to be verified.

import { NcclExtError } from '../errors/nccl-ext-error.js';
import { nearestName } from './nearest-name.js';

/** @throws ERR_INVALID_ARGUMENT naming the first of `options` that is none of `names`, and the one that was probably meant. */
export function requireKnownOptions(options: object, names: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const suggestion = nearestName(unknown, names);
  throw new NcclExtError('ERR_INVALID_ARGUMENT', `There is no option ${unknown}.`, {
    help: suggestion === undefined ? `Options are ${names.join(', ')}.` : `Did you mean ${suggestion}?`,
    field: unknown,
    expected: names,
    seen: unknown,
  });
}

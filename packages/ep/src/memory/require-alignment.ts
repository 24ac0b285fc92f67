// SPDX-License-Identifier: Apache-2.0
// Which multiples of rows zones may start at.

import { NcclExtError } from '@nccl-ext/core';
import type { EpLayout } from '@nccl-ext/core/contract';
import { describe } from '@nccl-ext/core/extend';

const largestAlignment = 2 ** 16;

export function requireAlignment(layout: EpLayout, alignment: unknown): void {
  if (layout !== 'packed' && alignment === 1) return;
  const fits =
    Number.isInteger(alignment) &&
    (alignment as number) >= 1 &&
    (alignment as number) <= largestAlignment &&
    Number.isInteger(Math.log2(alignment as number));
  if (layout === 'packed' && fits) return;
  throw new NcclExtError(
    'ERR_INVALID_ARGUMENT',
    layout === 'packed'
      ? `alignment must be a power of two, 1 to ${largestAlignment}, got ${describe(alignment)}.`
      : `alignment is for packed handles only; ${layout} has no zones.`,
    { field: 'alignment', seen: alignment },
  );
}

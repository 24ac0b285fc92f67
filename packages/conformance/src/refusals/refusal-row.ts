// SPDX-License-Identifier: Apache-2.0
// One way to be wrong, and what becomes of it here.

import type { CheckContext, Refusal } from '../run/check-context.js';

/** Refused by name, or not wrong at all, or not possible. */
export type RefusalRow = { readonly what: string } & (
  | {
      readonly outcome: 'refused';
      /** Ranks of the world that `attempt` asks for; 1 when it needs none. */
      readonly ranks: number;
      readonly error: Refusal;
      readonly attempt: (context: CheckContext) => unknown;
    }
  | {
      readonly outcome: 'supported';
      /** Name of the case that proves it. */
      readonly provenBy: string;
    }
  | { readonly outcome: 'does not apply'; readonly reason: string }
);

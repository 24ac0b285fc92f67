// SPDX-License-Identifier: Apache-2.0
// A configuration after the border: checked, with every default filled in.

import type { EpExpansion, EpOverflow, EpReduction } from '@nccl-ext/core/contract';
import type { EpDType } from './ep-config.js';
import type { ExpertMap } from './expert-map.js';

export interface EpSettings {
  readonly map: ExpertMap;
  readonly ranks: number;
  readonly topK: number;
  readonly hidden: number;
  readonly dtype: EpDType;
  readonly maxTokensPerRank: number;
  /** 0: eager. */
  readonly receiveBudget: number;
  readonly overflow: EpOverflow;
  readonly reduction: EpReduction;
  readonly expand: EpExpansion;
  /** 0: the backend chooses. */
  readonly sms: number;
  readonly contexts: number;
  readonly timeoutMs: number;
  readonly mask: boolean;
  /** -1: none. */
  readonly debugFill: number;
}

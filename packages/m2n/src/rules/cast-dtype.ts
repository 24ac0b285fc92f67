// SPDX-License-Identifier: Apache-2.0
// Says in which dtype a parameter arrives when the refit casts.

import { type DType, dtypeTraits, isFloatDType, NcclExtError } from '@nccl-ext/core';
import type { Parameter } from '../model/parameter.js';
import type { Rule } from './rule-set.js';

/**
 * `cast` for floats; integers and what the rule says keep their dtype.
 *
 * @throws ERR_CAST for quantised weights, whose values are their elements times scales, and for dtypes that do not cast.
 */
export function castDType({ name, dtype }: Parameter, rule: Rule, cast: DType, isQuantised: boolean): DType {
  if (rule.keepDType === true || dtype === cast || dtypeTraits[dtype].kind !== 'float') return dtype;
  const problem = isQuantised
    ? `it is quantised in blocks with scales, and a cast of the ${dtype} elements alone would change its values`
    : !isFloatDType(dtype) || !isFloatDType(cast)
      ? `no conversion from ${dtype} to ${cast} is defined`
      : undefined;
  if (problem === undefined) return cast;
  throw new NcclExtError(
    'ERR_CAST',
    `parameter ${JSON.stringify(name)} cannot be cast to ${cast}: ${problem}`,
    {
      field: name,
      help: 'Leave the cast away, or give its rule "keepDType": true.',
    },
  );
}

// SPDX-License-Identifier: Apache-2.0
// Takes the fields of a configuration that an architecture cannot do without.

import type { ModelConfig } from './model-config.js';
import { modelError } from './model-error.js';

type NumberField = {
  [Key in keyof ModelConfig]-?: NonNullable<ModelConfig[Key]> extends number ? Key : never;
}[keyof ModelConfig];

/** @throws ERR_MODEL naming the first field that is missing. */
export function requireConfig<Key extends NumberField>(
  config: ModelConfig,
  keys: readonly Key[],
): Record<Key, number> {
  return Object.fromEntries(
    keys.map((key) => {
      const value = config[key];
      if (value === undefined) {
        throw modelError(`the configuration of a ${config.model_type} model needs ${key}`, { field: key });
      }
      return [key, value];
    }),
  ) as Record<Key, number>;
}

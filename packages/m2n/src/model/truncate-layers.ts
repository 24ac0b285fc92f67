// SPDX-License-Identifier: Apache-2.0
// Cuts a model to its first layers, for trials that need its shapes but not its size.

import type { ModelDescription } from './model-description.js';
import { modelError } from './model-error.js';

/** @throws ERR_MODEL when the model has fewer layers. */
export function truncateLayers(model: ModelDescription, layers: number): ModelDescription {
  if (!Number.isSafeInteger(layers) || layers < 1 || layers > model.facts.layers) {
    throw modelError(
      `layers must be an integer in 1..${model.facts.layers}, the layers of ${model.name}, got ${layers}`,
      {
        field: 'layers',
      },
    );
  }
  return {
    ...model,
    facts: { ...model.facts, layers },
    parameters: model.parameters.filter(({ layer }) => layer === undefined || layer < layers),
  };
}

// SPDX-License-Identifier: Apache-2.0
// Finds parameters that belong together: weights and their scales, and the members of a fused storage.

import type { ModelDescription } from '../model/model-description.js';
import type { Parameter } from '../model/parameter.js';

const scaleSuffix = '_scale_inv';

/** Look-ups over the parameters of a model; they are rare, once per kind of parameter. */
export class ParameterIndex {
  readonly #parameters: readonly Parameter[];
  readonly #templates: ReadonlySet<string>;

  constructor({ parameters }: ModelDescription) {
    this.#parameters = parameters;
    this.#templates = new Set(parameters.map(({ template }) => template));
  }

  /** The parameter of this template with the layer and expert of `like`. */
  sibling(template: string, like: Parameter): Parameter | undefined {
    if (!this.#templates.has(template)) return undefined;
    return this.#parameters.find(
      (parameter) =>
        parameter.template === template && parameter.layer === like.layer && parameter.expert === like.expert,
    );
  }

  /** The weight whose scales `parameter` is, or undefined when it is no scales. */
  weightOf(parameter: Parameter): Parameter | undefined {
    const { template } = parameter;
    return template.endsWith(scaleSuffix)
      ? this.sibling(template.slice(0, -scaleSuffix.length), parameter)
      : undefined;
  }

  /** Whether there are scales for this weight. */
  hasScales({ template }: Parameter): boolean {
    return this.#templates.has(template + scaleSuffix);
  }
}

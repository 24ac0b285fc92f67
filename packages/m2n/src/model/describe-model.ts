// SPDX-License-Identifier: Apache-2.0
// Makes the description of a model from what a user has: a name, a JSON list of shapes, or a checkpoint.

import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type DType, dtypes, isDType } from '@nccl-ext/core';
import { requireObject, requireText } from '@nccl-ext/core/extend';
import { z } from 'zod';
import { dtypeOfSafetensors, safetensorsNames } from '../safetensors/dtype-names.js';
import { findDuplicateKey } from '../safetensors/find-duplicate-key.js';
import type { Checkpoint } from '../safetensors/open-checkpoint.js';
import { parametersOf } from './architecture.js';
import { type ModelConfig, modelConfig } from './model-config.js';
import type { ModelDescription } from './model-description.js';
import { closestOf, modelError } from './model-error.js';
import { factsOf } from './model-facts.js';
import { namedConfigs } from './named-models.js';
import { type Parameter, parameterOf } from './parameter.js';
import { truncateLayers } from './truncate-layers.js';

export interface DescribeOptions {
  /** Keep only this many layers, from the first on. */
  readonly layers?: number;
}

/**
 * A model by its name (`Qwen3-0.6B`, `moonshotai/Kimi-K2-Instruct`) or from a JSON file
 * `{"name": {"shape": [...], "dtype": "BF16"}}`, which may hold a configuration under `__config__`.
 *
 * @throws ERR_MODEL when the name is not known or the file is malformed.
 * @example
 * ```ts
 * const model = await describeModel('Qwen3-0.6B', { layers: 3 });
 * model.parameters.length; // 35
 * ```
 */
export async function describeModel(
  nameOrFile: string,
  options: DescribeOptions = {},
): Promise<ModelDescription> {
  requireText('nameOrFile', nameOrFile, 'ERR_MODEL');
  const model = nameOrFile.endsWith('.json') ? await describeFile(nameOrFile) : namedModel(nameOrFile);
  return options.layers === undefined ? model : truncateLayers(model, options.layers);
}

/** A model by its name, without reading anything. */
export function namedModel(name: string): ModelDescription {
  requireText('name', name, 'ERR_MODEL');
  const found = Object.keys(namedConfigs).find((full) =>
    [full, full.slice(full.indexOf('/') + 1)].includes(name),
  );
  if (found === undefined) {
    const near = closestOf(
      name,
      Object.keys(namedConfigs).map((full) => full.slice(full.indexOf('/') + 1)),
    );
    throw modelError(`model ${JSON.stringify(name)} is not known; the closest is ${near}`, {
      help: `Known are ${Object.keys(namedConfigs).join(', ')}; or give a .json file with shapes, or a checkpoint.`,
      field: 'model',
    });
  }
  const config = namedConfigs[found]!;
  const parameters = parametersOf(config);
  return { name: found, facts: factsOf(config, parameters), parameters };
}

/**
 * A model from an open checkpoint, with the facts of a `config.json` beside it, if there is one.
 *
 * @throws ERR_MODEL when config.json is malformed.
 */
export async function describeCheckpoint(
  checkpoint: Checkpoint,
  options: DescribeOptions = {},
): Promise<ModelDescription> {
  requireObject('checkpoint', checkpoint);
  requireText('checkpoint.path', checkpoint.path);
  const config = await configBeside(checkpoint.path);
  const shapes = new Map<string, readonly number[]>();
  const parameters = Array.from(checkpoint.tensors.values(), ({ name, shape, dtype }) =>
    parameterOf(name, shared(shapes, shape), dtype),
  );
  const model = { name: checkpoint.path, facts: factsOf(config, parameters), parameters };
  return options.layers === undefined ? model : truncateLayers(model, options.layers);
}

async function configBeside(path: string): Promise<ModelConfig | undefined> {
  const file = join(dirname(path), 'config.json');
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw modelError(`${file} cannot be read`, { cause: error });
  });
  return text === undefined ? undefined : modelConfig(parseJson(text, file), file);
}

async function describeFile(file: string): Promise<ModelDescription> {
  const text = await readFile(file, 'utf8').catch((cause) => {
    throw modelError(`${file} cannot be read (${(cause as Error).message})`, { field: 'model', cause });
  });
  const value = parseJson(text, file);
  const duplicate = findDuplicateKey(text);
  if (duplicate !== undefined)
    throw modelError(`${file}: ${JSON.stringify(duplicate.join('.'))} occurs twice`);
  return modelFromJson(value, file);
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw modelError(`${file} is not JSON (${(cause as Error).message})`, { cause });
  }
}

const entrySchema: z.ZodType<{ shape: number[]; dtype: string }> = z.object({
  shape: z.array(z.int().nonnegative()),
  dtype: z.string(),
});

/**
 * A model from `{"name": {"shape": [...], "dtype": "BF16"}}`; `source` names it.
 *
 * @throws ERR_MODEL naming the parameter and what is wrong with it.
 */
export function modelFromJson(json: unknown, source: string): ModelDescription {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw modelError(`${source} must be an object {"name": {"shape": [...], "dtype": "BF16"}}`);
  }
  const shapes = new Map<string, readonly number[]>();
  const parameters: Parameter[] = [];
  let config: ModelConfig | undefined;
  for (const [name, value] of Object.entries(json)) {
    if (name === '__config__') config = modelConfig(value, `${source} __config__`);
    else parameters.push(parameterFromJson(name, value, source, shapes));
  }
  return { name: source, facts: factsOf(config, parameters), parameters };
}

function parameterFromJson(
  name: string,
  value: unknown,
  source: string,
  shapes: Map<string, readonly number[]>,
): Parameter {
  const result = entrySchema.safeParse(value);
  if (!result.success) {
    throw modelError(`${source}: parameter ${JSON.stringify(name)}: ${z.prettifyError(result.error)}`, {
      field: name,
    });
  }
  const dtype = dtypeNamed(result.data.dtype);
  if (dtype === undefined) {
    const known = [...Object.values(safetensorsNames), ...dtypes].join(', ');
    const problem = `dtype ${JSON.stringify(result.data.dtype)} is not known; known are ${known}`;
    throw modelError(`${source}: parameter ${JSON.stringify(name)}: ${problem}`, { field: name });
  }
  return parameterOf(name, shared(shapes, result.data.shape), dtype);
}

function dtypeNamed(name: string): DType | undefined {
  return isDType(name) ? name : dtypeOfSafetensors(name);
}

/** One array for all equal shapes, so that what depends on a shape can be found by the array. */
function shared(shapes: Map<string, readonly number[]>, shape: readonly number[]): readonly number[] {
  const key = shape.join(',');
  const known = shapes.get(key);
  if (known !== undefined) return known;
  shapes.set(key, shape);
  return shape;
}

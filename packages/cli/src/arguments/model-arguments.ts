// SPDX-License-Identifier: Apache-2.0
// The options that `refit` and `plan m2n` share: which model, from which layout to which.

import { type DType, isDType, NcclExtError, presets } from '@nccl-ext/core';
import {
  type Checkpoint,
  describeCheckpoint,
  describeModel,
  findRules,
  type Manifest,
  type ModelDescription,
  openCheckpoint,
  type RefitRequest,
  readManifest,
} from '@nccl-ext/m2n';
import type { ArgsDef } from 'citty';
import { type Arguments, wrongValue } from './arguments.js';
import { readJson } from './read-json.js';

/** Two manifests say everything; anything else needs the shapes of a model. */
export const modelUsage: readonly string[] = [
  '(--checkpoint PATH | --model NAME) --from SIZES --to SIZES [options]',
  '--from-manifest FILE --to-manifest FILE [options]',
];

export const modelArguments: ArgsDef = {
  checkpoint: {
    type: 'string',
    valueHint: 'PATH',
    description: 'Safetensors file, index (.json), or folder that has one; config.json beside it is read',
  },
  model: {
    type: 'string',
    valueHint: 'NAME|FILE',
    description:
      'Instead of a checkpoint: Qwen3-0.6B, Qwen3-32B, Qwen3-30B-A3B, Kimi-K2-Instruct, or a .json file {"name": {"shape": [...], "dtype": "BF16"}}',
  },
  layers: { type: 'string', valueHint: 'N', description: 'Keep only the first N layers' },
  from: {
    type: 'string',
    valueHint: 'SIZES',
    description: 'How the sources are spread: ranks, pp, dp, cp, tp, edp, ep, etp, as in tp=4,pp=2',
  },
  to: { type: 'string', valueHint: 'SIZES', description: 'How the destinations are spread, as in tp=2,dp=2' },
  'from-manifest': {
    type: 'string',
    valueHint: 'FILE',
    description: 'Instead of --from: a manifest (.json) of what each source rank holds',
  },
  'to-manifest': {
    type: 'string',
    valueHint: 'FILE',
    description: 'Instead of --to: a manifest (.json) of what each destination rank wants',
  },
  colocated: {
    type: 'boolean',
    description: 'Both sides are the same ranks; otherwise the destinations follow the sources',
  },
  rules: {
    type: 'string',
    valueHint: 'NAME|FILE',
    description: 'How parameters are cut; by default those of the model family',
  },
  'from-view': {
    type: 'string',
    valueHint: 'NAME',
    description:
      'Names of the stored tensors at the source: a view of the rules; by default those of the checkpoint',
  },
  'to-view': { type: 'string', valueHint: 'NAME', description: 'The same at the destination, such as vllm' },
  cast: {
    type: 'string',
    valueHint: 'DTYPE',
    description: 'Convert float parameters on the way, as in bf16 or f32',
  },
  topology: {
    type: 'string',
    valueHint: 'NAME|FILE',
    description: `Where ranks are: ${Object.keys(presets).join(', ')}, or a .json file; by default one NVLink domain`,
  },
};

/** What the options name that may be a file, so that no output takes its place. */
export function modelFiles(args: Arguments): readonly (string | undefined)[] {
  return ['checkpoint', 'model', 'from-manifest', 'to-manifest', 'rules', 'topology'].map((name) =>
    args.text(name),
  );
}

/** What the options say, and the checkpoint that must be closed in the end. */
export interface ModelInput {
  readonly request: RefitRequest;
  /** What a report calls the model. */
  readonly name: string;
  /** The two sides as the user wrote them. */
  readonly from: string;
  readonly to: string;
  dispose(): Promise<void>;
}

/**
 * Reads the model and both sides. Headers of a checkpoint are read and checked, no data.
 *
 * @throws ERR_INVALID_ARGUMENT, ERR_CHECKPOINT, ERR_MODEL, ERR_RULES, ERR_MANIFEST, ERR_TOPOLOGY
 */
export async function readModelInput(args: Arguments): Promise<ModelInput> {
  const [from, to] = [await readSide(args, 'from'), await readSide(args, 'to')];
  // Two manifests say everything; a checkpoint then only gives the values.
  const manifestsOnly = from.manifest && to.manifest;
  if (!manifestsOnly || args.has('checkpoint') || args.has('model')) args.exactlyOne(['checkpoint', 'model']);
  refuseBesideManifests(args, from.manifest, to.manifest);
  const cast = readCast(args);
  const topology = await readTopology(args.text('topology'));
  const path = args.text('checkpoint');
  const checkpoint = path === undefined ? undefined : await openCheckpoint(path);
  try {
    const model = await readModel(args, checkpoint);
    return {
      request: {
        model,
        checkpoint,
        rules: model && args.has('rules') ? await findRules(model, args.text('rules')) : undefined,
        from: from.side,
        to: to.side,
        fromView: args.text('from-view'),
        toView: args.text('to-view'),
        colocated: args.flag('colocated'),
        cast,
        topology,
      },
      name: model?.name ?? 'manifests',
      from: from.text,
      to: to.text,
      dispose: async () => checkpoint?.dispose(),
    };
  } catch (error) {
    await checkpoint?.dispose();
    throw error;
  }
}

/** A manifest names its tensors and dtypes itself; rules and layers serve sides that are given as sizes. */
function refuseBesideManifests(args: Arguments, from: boolean, to: boolean): void {
  if (from) args.refuse(['from-view'], 'is for --from; a manifest has its own names');
  if (to) args.refuse(['to-view', 'cast'], 'is for --to; a manifest has its own names and dtypes');
  if (from && to) args.refuse(['layers', 'rules'], 'is for --from and --to; manifests need no rules');
  if (from && to) args.refuse(['model'], 'is for --from and --to; manifests have their own shapes');
}

async function readModel(
  args: Arguments,
  checkpoint: Checkpoint | undefined,
): Promise<ModelDescription | undefined> {
  const layers = args.integer('layers', 1, 1_000_000);
  const depth = layers === undefined ? {} : { layers };
  if (checkpoint !== undefined) return describeCheckpoint(checkpoint, depth);
  const name = args.text('model');
  return name === undefined ? undefined : describeModel(name, depth);
}

async function readSide(args: Arguments, name: 'from' | 'to'): Promise<SideInput> {
  const given = args.exactlyOne([name, `${name}-manifest`]);
  const text = args.text(given)!;
  const manifest = given !== name;
  return { side: manifest ? await readManifest(text) : text, text, manifest };
}

interface SideInput {
  readonly side: string | Manifest;
  /** As the user wrote it. */
  readonly text: string;
  readonly manifest: boolean;
}

/** `bf16`, and as safetensors writes it: `BF16`. */
function readCast(args: Arguments): DType | undefined {
  const text = args.text('cast');
  if (text === undefined) return undefined;
  const dtype = text.toLowerCase();
  if (isDType(dtype)) return dtype;
  throw wrongValue('cast', text, 'a float dtype: f32, f16, bf16, f8e4m3, f8e5m2 or f64');
}

async function readTopology(source: string | undefined): Promise<string | object | undefined> {
  if (source === undefined || !source.endsWith('.json')) return source;
  return readJson(source, (message, cause) => {
    return new NcclExtError('ERR_TOPOLOGY', `--topology ${message}`, { field: '--topology', cause });
  });
}

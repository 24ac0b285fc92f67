// SPDX-License-Identifier: Apache-2.0
// A whole model from one parallelism to another, in one call.

import type { LocalWorldOptions } from '@nccl-ext/core';
import { requireInteger, requireObject } from '@nccl-ext/core/extend';
import { createPlan } from '../plan/create-plan.js';
import type { TransferPlan } from '../plan/transfer-plan.js';
import type { Checkpoint } from '../safetensors/open-checkpoint.js';
import { checkRequest, checkSides } from './check-request.js';
import { executeRefit } from './execute-refit.js';
import { planTopology } from './plan-topology.js';
import { type RefitLayouts, type RefitSides, refitLayouts } from './refit-layouts.js';
import type { RefitProgress, RefitResult } from './refit-result.js';
import { placeSides, type SidePlacement } from './side-placement.js';
import { checkpointValues, syntheticValues } from './values.js';

/** What {@link planRefit} takes. */
export interface PlanRefitRequest extends RefitSides {
  /** As in `localWorld`; default: one NVLink domain. */
  readonly topology?: LocalWorldOptions['topology'];
}

/** What {@link refit} takes: the model and both sides, and how to run. */
export interface RefitRequest extends RefitSides, SidePlacement, Omit<LocalWorldOptions, 'ranks'> {
  /** Where the values come from; without one they are made up, different for every element. */
  readonly checkpoint?: Checkpoint | undefined;
  /** Hash what is sent and what arrived, and compare every destination byte with the values read again. Default false. */
  readonly verify?: boolean | undefined;
  /** Compare every destination byte, whether or not hashes were: the move takes no longer for it. Default as `verify`. */
  readonly check?: boolean | undefined;
  /** Publish this often, 1 to 1000, as a trainer does that refits at every step: a first refit has costs of its own. Default 1. */
  readonly repeat?: number | undefined;
  /**
   * SMs of each transfer, as `sms` of `prepareTransfer`: 0 for copy engines alone, whose largest stage must end within `timeoutMs`. Default:
   * as there.
   */
  readonly transferSms?: number | undefined;
  /** The version that ranks serve afterwards, each repeat a later one; default 1. */
  readonly version?: number | string | undefined;
  readonly onProgress?: ((progress: RefitProgress) => void) | undefined;
}

/**
 * Loads a model in the source's layout, moves it into the destination's layout, and verifies it, over ranks of this process.
 *
 * @throws ERR_INVALID_ARGUMENT, ERR_PARALLELISM, ERR_MODEL, ERR_RULES, ERR_MANIFEST, ERR_CAST before anything is allocated;
 * ERR_OUT_OF_MEMORY; ERR_VERIFY; the reason of `signal`. An interrupted refit reports no version.
 * @example
 * ```ts
 * const checkpoint = await openCheckpoint('model.safetensors');
 * try {
 *   const model = await describeCheckpoint(checkpoint);
 *   const result = await refit({ model, checkpoint, from: 'tp=4', to: 'tp=2,dp=2', verify: true });
 *   console.log(result.gigabytesPerSecond);
 * } finally {
 *   await checkpoint.dispose();
 * }
 * ```
 */
export async function refit(request: RefitRequest): Promise<RefitResult> {
  requireObject('request', request);
  const {
    model,
    rules,
    from,
    to,
    fromView,
    toView,
    colocated,
    cast,
    checkpoint,
    verify = false,
    check = verify,
    repeat = 1,
    version = 1,
    sourceDevices,
    destinationDevices,
    sourceSms,
    destinationSms,
    transferSms,
    ...run
  } = request;
  requireInteger('ERR_INVALID_ARGUMENT', 'repeat', repeat, 1, 1000);
  checkRequest(request);
  const layouts = await refitLayouts({
    model,
    rules,
    from,
    to,
    fromView,
    toView,
    colocated,
    cast,
  });
  const { tensors, worldSize } = layouts;
  const values =
    checkpoint === undefined ? syntheticValues(sourceShapes(tensors)) : checkpointValues(checkpoint);
  const placement = placeSides(
    layouts,
    { sourceDevices, destinationDevices, sourceSms, destinationSms },
    run,
  );
  return executeRefit({
    ...run,
    ...placement,
    tensors,
    worldSize,
    values,
    verify,
    check,
    repeat,
    version,
    transferSms,
  });
}

/** A plan without data, at any scale. */
export async function planRefit(request: PlanRefitRequest): Promise<{
  readonly plan: TransferPlan;
  readonly layouts: RefitLayouts;
  /** Milliseconds from the model, rules and manifests to what each side holds. */
  readonly layoutMs: number;
  /** Milliseconds from there to the plan with its totals and digest. */
  readonly planMs: number;
}> {
  requireObject('request', request);
  checkSides(request);
  const began = performance.now();
  const layouts = await refitLayouts(request);
  const laidOut = performance.now();
  const { tensors, worldSize } = layouts;
  const plan = createPlan({ tensors, worldSize, ...planTopology(request.topology, worldSize) });
  return { plan, layouts, layoutMs: laidOut - began, planMs: performance.now() - laidOut };
}

function sourceShapes(tensors: RefitLayouts['tensors']): Parameters<typeof syntheticValues>[0] {
  return new Map(tensors.map(({ name, source }) => [name, source[0]!.pattern]));
}

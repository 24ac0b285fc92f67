// SPDX-License-Identifier: Apache-2.0
// What a plan is made from: tensors with both of their sides, the size of the world, and where ranks are.

import type { Layout, Topology } from '@nccl-ext/core';
import type { SidePattern } from './side-pattern.js';

/** One place where a side keeps a tensor. */
export interface SideCopy {
  readonly pattern: SidePattern;
  /**
   * Names the stored tensor on each rank that holds the copy. Tensors may share a storage at different byte offsets
   * (q, k and v of a fused qkv); copies of one tensor with the same storage and place are one copy.
   */
  readonly storage: string;
}

/** A global tensor and its two sides. Several copies on a side: tied weights, all of them serve or all are written. */
export interface TensorRequest {
  readonly name: string;
  /** A layout stands for one copy whose storage has the tensor's name. */
  readonly source: Layout | readonly SideCopy[];
  readonly destination: Layout | readonly SideCopy[];
}

/** What {@link createPlan} takes. */
export interface PlanRequest {
  readonly tensors: readonly TensorRequest[];
  /** Ranks of the communicator, spectators included; default 1 + the highest rank that holds anything. */
  readonly worldSize?: number;
  /** Where ranks are; it may describe more ranks than the world has. Default: one NVLink domain. */
  readonly topology?: Topology;
  /** Plans that {@link createPlan} keeps for equal requests; 0 keeps none. Default: NCCL_EXT_PLAN_CACHE_ENTRIES, else 64. */
  readonly cacheEntries?: number;
}

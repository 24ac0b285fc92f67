// SPDX-License-Identifier: Apache-2.0
// The public API of @nccl-ext/ep.

export type {
  EpCounts,
  EpExpansion,
  EpGroupLayout,
  EpHandleLayout,
  EpLayout,
  EpOverflow,
  EpPass,
  EpQuantization,
  EpReduction,
  EpReplicaRule,
  EpSection,
} from '@nccl-ext/core/contract';
export { chooseReplica } from './config/choose-replica.js';
export type { EpConfig, EpDType } from './config/ep-config.js';
export type { ExpertMap, ExpertPlacement } from './config/expert-map.js';
export { expertMapOf } from './config/expert-map.js';
export type {
  EpOperation,
  Extent,
  FieldDType,
  FieldLists,
  FieldMatrix,
  FieldRule,
  Presence,
} from './fields/field-matrix.js';
export { fieldMatrix } from './fields/field-matrix.js';
export type { HighThroughputLayout, LowLatencyLayout } from './fields/modes.js';
export type { ForwardedRows, TensorShape } from './fields/shapes-of.js';
export { createEpGroup } from './group/create-ep-group.js';
export type { EpGroup, EpGroupMemory } from './group/ep-group.js';
export type { EpMembership } from './group/membership.js';
export type { EpProbe, ProbeOptions } from './group/probe-ep.js';
export { probeEp } from './group/probe-ep.js';
export type {
  CombineOptions,
  DispatchOptions,
  DispatchOutputs,
  DispatchOutputsOf,
  IndexTensor,
  PackedRouteCounts,
  RouteCounts,
  RouteOptions,
  RouteOptionsOf,
  WeightTensor,
} from './handle/call-options.js';
export type { EpHandle } from './handle/ep-handle.js';
export type { HandleOptions } from './handle/open-handle.js';
export type { OutputShapes, ShapeOptions } from './handle/output-shapes.js';
export type { EpLayoutMemory, EpMemory } from './memory/ep-memory.js';
export { epMemory } from './memory/ep-memory.js';
export type { EpMemoryLayout } from './memory/layout-of.js';
export { layoutOf } from './memory/layout-of.js';
export type { EpAllocator, EpMemorySource, EpOwnMemory, EpPurpose } from './memory/memory-source.js';
export type { EpTensor } from './tensor/tensor.js';
export { allocateTensor, tensor, tensorBytes } from './tensor/tensor.js';
export { viewTensor } from './tensor/view-tensor.js';

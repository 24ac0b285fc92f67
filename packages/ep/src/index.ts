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
export type { EpGroupMemory } from './group/ep-group.js';
export { EpGroup } from './group/ep-group.js';
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
export { EpHandle } from './handle/ep-handle.js';
export type { HandleOptions } from './handle/open-handle.js';
export type { OutputShapes, ShapeOptions } from './handle/output-shapes.js';
export type { ExpertCall, ExpertLayer } from './layer/expert-layer.js';
export type { HostExpert, HostExpertBatch } from './layer/host-experts.js';
export { hostExperts } from './layer/host-experts.js';
export type { LayerBuffers } from './layer/layer-buffers.js';
export { allocateLayerBuffers } from './layer/layer-buffers.js';
export type { LayerCall } from './layer/moe-layer.js';
export { MoeLayer, moeLayer } from './layer/moe-layer.js';
export type { EpLayoutMemory, EpMemory } from './memory/ep-memory.js';
export { epMemory } from './memory/ep-memory.js';
export type { EpMemoryLayout } from './memory/layout-of.js';
export { layoutOf } from './memory/layout-of.js';
export type { EpAllocator, EpMemorySource, EpOwnMemory, EpPurpose } from './memory/memory-source.js';
export type { QuantizedRows } from './quantization/dequantize.js';
export { dequantizeFp8, dequantizeMxfp8 } from './quantization/dequantize.js';
export type { GroupLimit } from './routing/limit-groups.js';
export type { PlacedExperts, PlaceInput } from './routing/place-experts.js';
export { placeExperts } from './routing/place-experts.js';
export type { BalanceInput, Ids, RoutingBalance } from './routing/routing-balance.js';
export { routingBalance } from './routing/routing-balance.js';
export type { Scoring } from './routing/score-row.js';
export type { Spread } from './routing/spread.js';
export type { TopK, TopKInput } from './routing/top-k.js';
export { topK } from './routing/top-k.js';
export type { EpTensor } from './tensor/tensor.js';
export { allocateTensor, tensor, tensorBytes } from './tensor/tensor.js';
export { viewTensor } from './tensor/view-tensor.js';

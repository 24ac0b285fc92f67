// SPDX-License-Identifier: Apache-2.0
// The public API of @nccl-ext/core.

export type { BackendReport, PackageReport } from './backend/describe-backends.js';
export { describeBackends } from './backend/describe-backends.js';
export type { BackendProbe } from './backend/probe-backend.js';
export { probeBackend } from './backend/probe-backend.js';
export type {
  BackendInfo,
  DeviceInfo,
  MemoryKind,
  MemoryShare,
  Probe,
  ProbedDevice,
  WindowPeers,
} from './contract/index.js';
export { castArray, isCastable } from './dtype/cast-array.js';

export type { DType, FloatDType } from './dtype/dtype.js';
export { dtypeBytes, dtypes, dtypeTraits, isDType, isFloatDType } from './dtype/dtype.js';
export { packF4, unpackF4 } from './dtype/f4.js';
export { decodeFloat, encodeFloat } from './dtype/float-bits.js';
export type { NumberDType } from './dtype/float64-values.js';
export { fromFloat64, toFloat64 } from './dtype/float64-values.js';

export type { TypedArrayConstructor, TypedArrayOf, TypedArrays } from './dtype/typed-array.js';
export { typedArrayFor } from './dtype/typed-array.js';
export type { ErrorCode } from './errors/codes.js';
export { errorNumbers } from './errors/codes.js';
export type { ErrorDetails } from './errors/nccl-ext-error.js';
export { NcclExtError } from './errors/nccl-ext-error.js';
export type { DimSharding } from './layout/dim-sharding.js';
export type { LayoutInput, LayoutJSON } from './layout/layout.js';
export { Layout, layout } from './layout/layout.js';
export type { Placement, Split } from './layout/placement.js';
export { blockCyclic, interleaved, ranges, replicate, shard, sizes, strided } from './layout/placement.js';
export type { AffineRun, DimRuns, RunIntersection, RunPiece } from './layout/runs.js';
export { dimRuns, firstUncovered, globalToLocal, intersectRuns, localToGlobal } from './layout/runs.js';
export type { LayoutDocument } from './layout/schema.js';
export { layoutFromJSON, meshFromJSON } from './layout/schema.js';
export type { MeshAxis, MeshJSON, MeshOptions } from './mesh/device-mesh.js';
export { DeviceMesh, mesh } from './mesh/device-mesh.js';
export type { ChannelEvents, ChannelName } from './observe/channels.js';
export { subscribe } from './observe/channels.js';
export type { LogFields, Logger, LogLevel } from './observe/logger.js';
export type { BackendChoice, OptionName, Options, TransferPathChoice } from './options/option-table.js';
export type {
  Environment,
  ExplicitOptions,
  OptionOrigin,
  ResolvedOptions,
  UnknownVariable,
} from './options/resolve-options.js';
export { resolveOptions } from './options/resolve-options.js';
export type { OneProcessOptions, WorldOptions } from './options/world-options.js';
export type { BufferRange } from './runtime/buffer-range.js';
export type { AgreedFields } from './runtime/communicator.js';
export { Communicator } from './runtime/communicator.js';
export type { BufferKind } from './runtime/device-buffer.js';
export { DeviceBuffer } from './runtime/device-buffer.js';
export { Graph } from './runtime/graph.js';
export type { LaunchOptions } from './runtime/kernel.js';
export { Kernel } from './runtime/kernel.js';
export { KernelModule } from './runtime/kernel-module.js';
export type { KernelParameter } from './runtime/kernel-parameters.js';
export type { KernelValue } from './runtime/kernel-values.js';
export { param } from './runtime/kernel-values.js';
export type { Extent } from './runtime/launch-shape.js';
export type { SplitOptions } from './runtime/split.js';
export { Stream } from './runtime/stream.js';
export { StreamEvent } from './runtime/stream-event.js';
export { Window } from './runtime/window.js';
export type { Link, LinkClass, Links } from './topology/link.js';
export { linkClasses } from './topology/link.js';
export type { PresetName, TopologyPreset } from './topology/presets.js';
export { presets, presetTopology, singleDomain } from './topology/presets.js';
export { Topology, topology } from './topology/topology.js';
export { topologyFor } from './topology/topology-for.js';
export type { RankPlace, TopologyDescription } from './topology/topology-schema.js';
export { version } from './version.js';
export type { Faults } from './world/faults.js';
export type { InitOptions } from './world/init.js';
export { init } from './world/init.js';
export type { Launch } from './world/launcher.js';
export { readLauncher } from './world/launcher.js';
export type { LocalWorldOptions } from './world/local-world.js';
export { localWorld } from './world/local-world.js';
export type { World } from './world/world.js';

// SPDX-License-Identifier: Apache-2.0
// The backend contract (`@nccl-ext/core/contract`): what a backend implements and the classes above it call.

export type { Backend, BackendInfo, BackendName } from './backend.js';
export { contractVersion } from './backend.js';
export type { BuildInfo, CudaPackage, LoadOptions, Probe, ProbedDevice } from './cuda-package.js';
export type { RecordField } from './device-records.js';
export { deviceOps, deviceRecordBytes, deviceStatusFields, rankWordsFields } from './device-records.js';
export type {
  EpCombineCall,
  EpCounter,
  EpCounts,
  EpDispatchCall,
  EpExpansion,
  EpGroupConfig,
  EpGroupHandle,
  EpGroupLayout,
  EpGroupState,
  EpHandleConfig,
  EpHandleHandle,
  EpHandleLayout,
  EpLayout,
  EpOverflow,
  EpPass,
  EpQuantization,
  EpRange,
  EpReduction,
  EpReplicaRule,
  EpRouteCall,
  EpSection,
  EpSpi,
} from './ep.js';
export {
  absentRange,
  callBytes,
  contextBytes,
  epAlignment,
  epExpansions,
  epLayouts,
  epOverflowPolicies,
  epPasses,
  epQuantizations,
  epReductions,
  epReplicaRules,
  maxEpCalls,
  maxTopK,
} from './ep.js';
export type { FaultSpi } from './faults.js';
export { kernelGuardBytes, kernelGuardFields } from './kernel-guard.js';
export type {
  M2nSpi,
  MoveTable,
  PrepareConfig,
  TensorBindings,
  TransferHandle,
  TransferPath,
  TransferProgram,
  TransferProgress,
} from './m2n.js';
export { castOf, castTransform, moveLoops, unbound } from './m2n.js';
export type { ErrorRecord, Outcome, Status } from './outcome.js';
export type {
  BufferHandle,
  DeviceInfo,
  EventHandle,
  GraphHandle,
  HostView,
  JoinConfig,
  KernelHandle,
  KernelLaunch,
  LocalRanksConfig,
  MemoryKind,
  MemoryShare,
  MemoryUsage,
  ModuleHandle,
  RankHandle,
  RuntimeSpi,
  SplitRank,
  StreamHandle,
  WindowHandle,
  WindowPeers,
} from './runtime.js';
export { maxQueuedOperations } from './runtime.js';

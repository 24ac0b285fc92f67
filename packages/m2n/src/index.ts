// SPDX-License-Identifier: Apache-2.0
// The public API of @nccl-ext/m2n.

export type { TransferPath } from '@nccl-ext/core/contract';
export type { JoinedSides, JoinedTensor, SideTensor, TransferSide } from './manifest/join-sides.js';
export { joinSides } from './manifest/join-sides.js';
export type { ManifestPlace } from './manifest/manifest-error.js';
export { manifestOf } from './manifest/manifest-of.js';
export type {
  Manifest,
  ManifestAllocation,
  ManifestBox,
  ManifestPiece,
  ManifestRank,
  ManifestTensor,
} from './manifest/manifest-schema.js';
export { parseManifest } from './manifest/manifest-schema.js';
export type { ManifestSideOptions } from './manifest/manifest-side.js';
export { manifestSide } from './manifest/manifest-side.js';
export { readManifest } from './manifest/read-manifest.js';
export { refitSide } from './manifest/refit-side.js';
export type { DescribeOptions } from './model/describe-model.js';
export { describeCheckpoint, describeModel, modelFromJson, namedModel } from './model/describe-model.js';
export type { ModelConfig } from './model/model-config.js';
export type { ModelDescription, ModelFacts } from './model/model-description.js';
export { parameterBytes } from './model/model-description.js';
export { namedConfigs } from './model/named-models.js';
export type { Parameter } from './model/parameter.js';
export type { Parallelism, ParallelSizes } from './parallel/parallelism.js';
export { parallelism } from './parallel/parallelism.js';
export type { Side } from './parallel/rank-groups.js';
export { createPlan } from './plan/create-plan.js';
export type { ExecutablePlan, PlannedTensor, ProgramOptions } from './plan/executable-plan.js';
export type {
  CastSummary,
  PlanExplanation,
  RankBytes,
  TensorSummary,
} from './plan/explain/plan-explanation.js';
export type { Bottleneck, Prediction } from './plan/explain/predict.js';
export type { HeldTensor } from './plan/held-tensors.js';
export type {
  CopyDocument,
  MoveDocument,
  PartDocument,
  PatternDocument,
  PlanDocument,
  ProgramDocument,
  TensorDocument,
} from './plan/json/plan-document.js';
export type { StoredPlan } from './plan/json/stored-plan.js';
export { planFromJSON } from './plan/json/stored-plan.js';
export type { PlanJSONOptions } from './plan/json/write-plan.js';
export type { BoxesInput, HeldBox } from './plan/pattern-of-boxes.js';
export { patternOfBoxes } from './plan/pattern-of-boxes.js';
export type { StoragePlacement } from './plan/pattern-of-layout.js';
export { patternOf } from './plan/pattern-of-layout.js';
export type { PlanRequest, SideCopy, TensorRequest } from './plan/plan-request.js';
export type { PlanTotals } from './plan/plan-totals.js';
export type { Part, PartInput, SidePattern, SidePatternInput } from './plan/side-pattern.js';
export { sidePattern } from './plan/side-pattern.js';
export type { TransferPlan } from './plan/transfer-plan.js';
export type { PublicationState, PublishOptions } from './publish/publication.js';
export { Publication } from './publish/publication.js';
export type { PublishTimes } from './publish/publish-times.js';
export type { PlanRefitRequest, RefitRequest } from './refit/refit.js';
export { planRefit, refit } from './refit/refit.js';
export type { RefitLayouts, RefitSides, SideInput } from './refit/refit-layouts.js';
export type { RefitPhase, RefitProgress, RefitResult, RefitTimes } from './refit/refit-result.js';
export type { SidePlacement } from './refit/side-placement.js';
export type { ReportContext } from './report/refit-report.js';
export { refitReport } from './report/refit-report.js';
export { builtInRules } from './rules/built-in-rules.js';
export { findRules } from './rules/find-rules.js';
export type { PlacedCopy } from './rules/place-parameters.js';
export type { RefitInput, RefitSide, RefitTensor, RefitTensors } from './rules/refit-tensors.js';
export { refitTensors } from './rules/refit-tensors.js';
export type { Cut, Rule, RuleSet, ViewEntry } from './rules/rule-set.js';
export { parseRuleSet } from './rules/rule-set.js';
export type { SideStorage, StoragePiece } from './rules/side-storages.js';
export type { Checkpoint, CheckpointTensor } from './safetensors/open-checkpoint.js';
export { openCheckpoint } from './safetensors/open-checkpoint.js';
export type { CheckpointEntry, WriteCheckpointOptions } from './safetensors/write-checkpoint.js';
export { writeCheckpoint } from './safetensors/write-checkpoint.js';
export type { Bindings } from './transfer/bind-tensors.js';
export type { PrepareOptions } from './transfer/prepare-transfer.js';
export { prepareTransfer } from './transfer/prepare-transfer.js';
export type { ReshardOptions, ReshardSide, ReshardTensor } from './transfer/reshard.js';
export { reshard } from './transfer/reshard.js';
export type { TransferProgress } from './transfer/transfer.js';
export { Transfer } from './transfer/transfer.js';

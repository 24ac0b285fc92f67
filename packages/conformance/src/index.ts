// SPDX-License-Identifier: Apache-2.0
// The public API of @nccl-ext/conformance: the case tables, and what runs them on any world.

export type { CaseHeader, CheckCase, ConformanceCase, M2nCase, SideSpec, TensorSpec } from './cases/case.js';
export type { GroupInfo, GroupName } from './cases/groups.js';
export { groups } from './cases/groups.js';
export type { CaseSelection } from './cases/select-cases.js';
export { selectCases } from './cases/select-cases.js';
export type { EpCase, ForwardSpec, HandleSpec, RoutingSpec } from './ep/cases/ep-case.js';
export type { CaseResult, RunSummary } from './run/case-result.js';
export type { CaseWorld } from './run/case-world.js';
export { CheckContext } from './run/check-context.js';
export type { JoinRequest, ProcessGroupOptions } from './run/process-group.js';
export { ProcessGroup } from './run/process-group.js';
export type { RunCaseOptions } from './run/run-case.js';
export { runCase } from './run/run-case.js';
export type { RunOptions } from './run/run-cases.js';
export { runCases } from './run/run-cases.js';
export type { WorldFactory, WorldRequest } from './run/world-pool.js';
export { WorldPool } from './run/world-pool.js';

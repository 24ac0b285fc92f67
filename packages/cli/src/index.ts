// SPDX-License-Identifier: Apache-2.0
// The public API of @nccl-ext/cli: the command as a function, for programs that bring their own streams.

export type { Output, Surroundings } from './run-cli.js';
export { runCli } from './run-cli.js';

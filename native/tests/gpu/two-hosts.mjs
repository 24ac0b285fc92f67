// SPDX-License-Identifier: Apache-2.0
// One process of `nccl-ext run -n 4`, half of which say that they are on another machine: their transfers must go through NCCL.
// The addon and NCCL both take a machine's name from NCCL_HOSTID. Ranks that share the GPU all the same need SMs that fit it.

const rank = Number(process.env.RANK);
process.env.NCCL_HOSTID = `machine-${rank >> 1}`;
process.env.NCCL_EXT_SMS ??= '16';
process.argv.splice(
  2,
  process.argv.length,
  'selftest',
  '--backend',
  'cuda',
  '--group',
  'sharding,placements,casts',
);
await import('../../../node_modules/@nccl-ext/cli/bin/nccl-ext.mjs');

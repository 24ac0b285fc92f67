// SPDX-License-Identifier: Apache-2.0
// Every test of nccl_ep 0.1 in words of our own, the gaps that it leaves, and what shows the same here.

/** One test, or one gap. */
export type UpstreamRow = { readonly what: string } & (
  | {
      readonly outcome: 'covered';
      /** Names of cases; a name that ends in `*` stands for all that begin so. */
      readonly provenBy: readonly string[];
    }
  | { readonly outcome: 'does not apply'; readonly reason: string }
);

const covered = (what: string, ...provenBy: readonly string[]): UpstreamRow => ({
  what,
  outcome: 'covered',
  provenBy,
});
const elsewhere = (what: string, reason: string): UpstreamRow => ({
  what,
  outcome: 'does not apply',
  reason,
});

export const upstreamRows: readonly UpstreamRow[] = [
  // Output layouts
  covered('rows of the flat layout', 'ep-layouts/flat, 4 tokens of 8 experts'),
  covered(
    'rows of packed zones',
    'ep-layouts/packed, 4 tokens of 8 experts',
    'ep-layouts/packed, zones of 1',
  ),
  covered('packed zones with an alignment', 'ep-layouts/packed, zones of *'),
  covered('combine of the flat layout', 'ep-combine/bf16, a rounding per rank'),
  covered('combine of packed zones', 'ep-combine/bf16, a rounding per token', 'ep-backward/packed, top-1'),
  covered('weights and ids beside the rows', 'ep-layouts/rows name their experts as they were routed'),
  covered(
    'a total on the device, packed and flat',
    'ep-layouts/packed, 4 tokens of 8 experts',
    'ep-layouts/flat, 4 tokens of 8 experts',
  ),
  covered('eager buffers of the size that was received', 'ep-layouts/buffers as long as counts() says'),
  covered('eager buffers sized from the outputs of route', 'ep-layouts/buffers as long as counts() says'),
  covered('eager buffers of no rows, forward and backward', 'ep-backward/nobody receives anything'),
  covered(
    'an eager buffer that is too small',
    'ep-budgets/flat, a buffer that is too small*',
    'ep-budgets/packed, a buffer that is too small*',
  ),
  covered('top-2: a token once per rank', 'ep-routing/both experts of one rank'),
  covered('top-2 without alignment', 'ep-layouts/packed, zones of 1'),
  covered(
    'top-2: padding is zero, over poison',
    'ep-layouts/packed, rows that nobody writes are marked',
    'ep-layouts/packed, zones of 8',
  ),
  covered('top-2: equal tokens', 'ep-layouts/* equal rows of equal tokens'),
  // Maps
  covered('maps from entries to rows of both layouts', 'ep-routing/*'),
  covered(
    'batches of several ranks do not mix',
    'ep-layouts/rows in order of source and token, the same every time',
  ),
  covered('zones of the map with an alignment', 'ep-layouts/packed, zones of *'),
  covered('the permutation of packed rows', 'ep-layouts/packed, equal rows of equal tokens'),
  // Lifecycle
  elsewhere(
    'fits of low-latency combine into shared memory',
    'a property of one kernel’s launch, which this package’s kernels test natively',
  ),
  covered(
    'a handle that is made first and routed later, twice',
    'ep-layouts/one group, low latency and high throughput in turn',
  ),
  covered(
    'memory of the caller for a handle',
    'ep-lifetime/memory of the caller is used and nothing beside it',
  ),
  covered('a handle that is used again and again', 'ep-lifetime/a hundred steps allocate nothing'),
  // Backward
  covered('combine of gradients, flat and packed', 'ep-backward/flat, top-1', 'ep-backward/packed, top-1'),
  covered('scatter of gradients, flat and packed', 'ep-backward/flat, top-2', 'ep-backward/packed, top-2'),
  covered('top-2 of both, ids of 32 and 64 bits', 'ep-backward/ids of 64 bits'),
  // Overflow
  covered('drops go on, flat', 'ep-budgets/flat, drop-by-source*'),
  covered('drops go on, packed', 'ep-budgets/packed, drop-by-source*'),
  covered('a buffer below the budget', 'ep-refusals/flat, an output below the budget'),
  covered('no byte beyond the budget is written', 'ep-budgets/zones of *'),
  covered(
    'phantom rows behind a deep overflow',
    'ep-budgets/phantom rows behind a deep overflow are not touched',
  ),
  covered(
    'a smaller second batch ships no stale row',
    'ep-layouts/a smaller second batch leaves no rows of the first',
  ),
  // Tensors and structures
  elsewhere('descriptors on stack and heap', 'tensors are plain objects; nobody allocates a descriptor'),
  elsewhere(
    'sizes and versions of public structures',
    'options are objects of JavaScript, not structures that a caller compiles in',
  ),
  // Quantisation
  covered('recipes are resolved and complete', 'ep-quantization/*'),
  covered('a row that is no multiple of 16 bytes', 'ep-refusals/rows that are no multiple of 16 bytes'),
  covered('fp8 made by dispatch', 'ep-quantization/bf16 to fp8', 'ep-quantization/bf16 to fp8-pow2'),
  covered('packed fp4 as bytes, low latency', 'ep-quantization/packed fp4 with a scale per 16'),
  covered('packed fp4 as bytes, packed zones', 'ep-quantization/packed fp4 with a scale per 16'),
  covered('scales of an eager buffer', 'ep-quantization/* scales pass with f8e4m3 rows'),
  covered('forwarded rows with drops', 'ep-quantization/forwarded rows with drops and marks'),
  covered('rejected combinations of recipe, dtype, scales and hidden size', 'ep-refusals/*'),
  elsewhere(
    'NVFP4 payloads of combine',
    'needs Blackwell’s conversions; combine has fp8 payloads instead, see the limits in the documentation',
  ),
  covered('the best reduced payload of combine', 'ep-quantization/combine of bf16 through fp8, usual values'),
  // Ids of received rows
  covered(
    'local ids',
    'ep-layouts/flat, 4 tokens of 8 experts',
    'ep-layouts/rank-major, 4 tokens of 8 experts',
  ),
  covered('global ids, six routings', 'ep-routing/*'),
  covered(
    'counters asked for and not',
    'ep-layouts/flat, required outputs only',
    'ep-layouts/packed, required outputs only',
  ),
  covered('poison around them', 'ep-layouts/flat, rows that nobody writes are marked'),
  // Zero copy
  covered(
    'round trip in memory of the caller',
    'ep-lifetime/memory of the caller is used and nothing beside it',
  ),
  covered('scale dtypes', 'ep-quantization/* scales pass with f8e4m3 rows'),
  covered('a misaligned offset', 'ep-refusals/a tensor that starts between multiples of 16 bytes'),
  elsewhere(
    'windows for half of the tensors',
    'every tensor may lie anywhere; the backend chooses the path by itself',
  ),
  elsewhere('elastic buffers of GPU and host memory', 'an example of nccl_ep, not part of its interface'),
  // Low-latency protocol
  covered('epochs of a group, as a model', 'ep-order/1 context', 'ep-order/7 contexts'),
  covered(
    'two handles in three orders, top-1 and top-2',
    'ep-order/two handles of low latency in turn',
    'ep-order/twelve handles of all layouts, 36 steps without a wait',
  ),
  covered(
    'sends and completes apart',
    'ep-order/sends that are completed later',
    'ep-order/four sends are open at a time, a fifth is refused',
  ),
  covered(
    'the program with all its switches: cached, random, graphs',
    'ep-graphs/each layout, replayed with other values',
  ),
  // Gaps
  covered('gap: the same bytes every time', 'ep-order/* the same bytes whoever is late'),
  covered(
    'gap: ids out of range, and twice',
    'ep-refusals/* an id beyond the last expert',
    'ep-refusals/* an id twice in a token',
  ),
  covered(
    'gap: random steps for long',
    'soak/ten thousand steps of handles of all layouts in random order',
    'soak/a thousand steps, each with another routing',
  ),
  covered(
    'gap: ranks that hang, and come back',
    'ep-faults/* a rank that never comes is named',
    'ep-membership/* a lost rank is left out and comes back',
  ),
  covered(
    'gap: several handles of high throughput at a time',
    'ep-order/handles of high throughput on three streams',
  ),
  covered('gap: more than four ranks', 'ep-shapes/16 ranks'),
  covered('gap: odd hidden sizes', 'ep-shapes/hidden *'),
  covered(
    'gap: races between streams',
    'ep-order/* outputs that another stream poisons first',
    'ep-order/* inputs may change after their operation',
  ),
  covered(
    'gap: leaks',
    'ep-lifetime/30 rounds of create, step and dispose hold nothing',
    'soak/a thousand rounds of create, step and dispose of EP groups',
  ),
];

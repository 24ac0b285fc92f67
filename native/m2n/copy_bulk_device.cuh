// SPDX-License-Identifier: Apache-2.0
// Copies tiles through shared memory with the bulk copy engine: a few warps keep many loads and stores under way and touch no byte.
//
// All lanes find addresses, of a run of the source or a piece of the destination each; one lane starts the copies.
#pragma once

#include "m2n/bulk_ring_device.cuh"
#include "m2n/copy_staged_device.cuh"
#include "m2n/grants_device.cuh"
#include "m2n/shared/piece.hpp"

namespace nccl_ext {

// Starts the load of a tile. All lanes, converged.
__device__ inline void startLoad(const Bundle& bundle, const Member* members, const TileSpan& span,
                                 const StageRef& into) {
  const std::uint32_t bytes = span.units * kBulkUnitBytes, run = bundle.sourceRun.divisor;
  if (ptx::electSync()) ptx::mbarrierArriveExpectTx(*into.loaded, span.pieces * bytes);
  __syncwarp();
  const std::uint32_t end = span.firstPiece + span.pieces;
  const std::uint32_t last = bundle.sourceRun.quotient(end - 1);
  const std::uint32_t stage = ptx::sharedAddress(into.bytes);
  const std::uint32_t barrier = ptx::sharedAddress(into.loaded);
  for (std::uint32_t base = bundle.sourceRun.quotient(span.firstPiece); base <= last; base += 32) {
    const std::uint32_t at = min(base + threadIdx.x % 32, last);
    const std::uint32_t begin = max(span.firstPiece, at * run), stop = min(end, (at + 1) * run);
    const std::uint64_t source = sourceOf(bundle, members, span, begin);
    const std::uint32_t slot = (begin - span.firstPiece) * bytes, length = (stop - begin) * bytes;
    const std::uint32_t count = min(last - base + 1, 32u);
    for (std::uint32_t i = 0; i < count; i++) {
      const std::uint64_t from = __shfl_sync(kAllLanes, source, static_cast<int>(i));
      const std::uint32_t to = stage + __shfl_sync(kAllLanes, slot, static_cast<int>(i));
      const std::uint32_t size = __shfl_sync(kAllLanes, length, static_cast<int>(i));
      if (ptx::electSync()) ptx::cpAsyncBulkLoad(to, from, size, barrier);
    }
  }
}

// Starts the stores of a tile whose load is over. All lanes, which then end their groups of stores.
__device__ inline void startStore(const Bundle& bundle, const Member* members, const TileSpan& span,
                                  const std::uint8_t* loaded) {
  const std::uint32_t copies = bundle.copies, bytes = span.units * kBulkUnitBytes;
  std::uint32_t stage = ptx::sharedAddress(loaded);
  for (std::uint32_t base = 0; base < span.pieces; base += 32) {
    const std::uint32_t count = min(span.pieces - base, 32u);
    const Place place = placeOf(bundle, span.firstPiece + base + min(threadIdx.x % 32, count - 1));
    const Member* const member = members + place.column * copies;
    for (std::uint32_t copy = 0; copy < copies; copy++) {
      const std::uint64_t mine =
          member[copy].destination + distanceTo(place, member[copy].strides) + span.offset * kBulkUnitBytes;
      for (std::uint32_t i = 0; i < count; i++) {
        const std::uint64_t to = __shfl_sync(kAllLanes, mine, static_cast<int>(i));
        if (ptx::electSync()) ptx::cpAsyncBulkStore(to, stage + i * bytes, bytes);
      }
    }
    stage += count * bytes;
  }
}

// In: all warps of the CTA, each for itself, their mbarriers initialised. Out: all stores made, and ordered before what the thread
// does next.
template <bool kLanes>
__device__ void copyByBulk(const TransferArgs& args, std::uint64_t epoch, const BulkRing<kLanes>& ring) {
  constexpr std::uint32_t kStages = BulkRing<kLanes>::kStages, kAhead = BulkRing<kLanes>::kAhead;
  const PartWork& part = args.work.bulk;
  const Member* const members = args.work.members;
  // What peers wrote in stage 0 reached this kernel by ordinary means; the engine must see it.
  ptx::fenceProxyAsync();
  TileWalk walk(part, args.state->taken[0].tiles);
  TileRef ahead[kAhead];  // loaded and not yet stored, the oldest first
  std::uint32_t loads = 0, stores = 0;
  WarpGate gate{args, epoch};
  const auto loadNext = [&](TileRef& ref) {
    ref = walk.take();
    const Bundle& bundle = part.bundles[ref.bundle];
    const TileSpan span = spanOf(bundle, ref.tile);
    const StageRef into{ring.stage(loads), &ring.barrier(loads)};
    loads++;
    if (kLanes && bundle.staged != 0)
      startStagedLoad(bundle, members + bundle.firstMember, span, into);
    else
      startLoad(bundle, members + bundle.firstMember, span, into);
  };
#pragma unroll
  for (std::uint32_t i = 0; i < kAhead; i++) {
    if (walk.more()) loadNext(ahead[i]);
  }
  while (stores < loads) {
    const TileRef ref = ahead[0];
#pragma unroll
    for (std::uint32_t i = 1; i < kAhead; i++) ahead[i - 1] = ahead[i];
    const Bundle& bundle = part.bundles[ref.bundle];
    if (gate.granted != ref.bundle) {
      if (!gate.mayStore(ref.bundle, bundle)) break;
      ptx::fenceProxyAsync();
      __syncwarp();
    }
    const TileSpan span = spanOf(bundle, ref.tile);
    ring.awaitLoad(stores);
    if (kLanes && bundle.staged != 0)
      storeStaged(bundle, members + bundle.firstMember, span, ring.stage(stores));
    else
      startStore(bundle, members + bundle.firstMember, span, ring.stage(stores));
    stores++;
    ptx::cpAsyncBulkCommitGroup();
    // Where each tile is stored several times, memory is faster with fewer loads under way: 0.85 instead of 0.92 ms for 1 GiB to two
    // replicas with 16 CTAs per source.
    const std::uint32_t most = bundle.copies > 1 ? 1 : kAhead;
#pragma unroll
    for (std::uint32_t under = 0; under < kAhead; under++) {
      if (loads - stores != under || under >= most || !walk.more()) continue;
      // The stage's last store is the one kStages tiles before.
      ptx::cpAsyncBulkWaitGroupRead<kStages - kAhead>();
      __syncwarp();
      loadNext(ahead[under]);
    }
    gate.wrote(span.pieces, span.units * bundle.sourceUnit, bundle.copies);
  }
  // After a failure too, shared memory must be quiet before the CTA ends.
  while (stores < loads) ring.awaitLoad(stores++);
  ptx::cpAsyncBulkWaitGroup();
  ptx::fenceProxyAsync();
  gate.report();
}

}  // namespace nccl_ext

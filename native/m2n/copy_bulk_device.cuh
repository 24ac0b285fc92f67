// SPDX-License-Identifier: Apache-2.0
// Copies tiles through shared memory with the bulk copy engine: a few warps keep many loads and stores under way and touch no byte.
//
// Each warp has a ring of stages. Tile n of a warp uses stage n % kStages: its load is started kAhead tiles before its store, and
// a stage is loaded again when its last store has read it. All lanes start copies, a run of the source and a piece of the
// destination each.
#pragma once

#include "m2n/grants_device.cuh"
#include "m2n/shared/piece.hpp"
#include "runtime/bulk_ptx.cuh"

namespace nccl_ext {

constexpr std::uint32_t kStages = 3;
constexpr std::uint32_t kAhead = 2;  // the rest of the stages are being stored
constexpr std::uint32_t kRingBytes = kStages * kBulkTileBytes;
constexpr std::uint32_t kBulkSharedBytes = kBulkWarps * kRingBytes;
static_assert(kBulkTileBytes % 128 == 0 && kAhead < kStages);
static_assert(kBulkSharedBytes <= 224 * 1024, "what a CTA can have on sm_90, less what the kernel declares");

// Of one warp.
struct BulkRing {
  std::uint8_t* stages;   // [kStages][kBulkTileBytes] in shared memory, on a multiple of 128
  std::uint64_t* loaded;  // [kStages] mbarriers

  __device__ std::uint8_t* stage(std::uint32_t n) const { return stages + n % kStages * kBulkTileBytes; }
  __device__ std::uint64_t& barrier(std::uint32_t n) const { return loaded[n % kStages]; }
  // Loads end whatever peers do: no deadline.
  __device__ void awaitLoad(std::uint32_t n) const {
    while (!ptx::mbarrierTryWait(barrier(n), n / kStages % 2)) {
    }
  }
};

// Starts the load of tile `n` of a warp. All lanes, converged.
__device__ inline void startLoad(const Bundle& bundle, const Member* members, const TileSpan& span,
                                 const BulkRing& ring, std::uint32_t n) {
  const std::uint32_t bytes = span.units * kBulkUnitBytes;
  if (threadIdx.x % 32 == 0) ptx::mbarrierArriveExpectTx(ring.barrier(n), span.pieces * bytes);
  __syncwarp();
  const std::uint32_t end = span.firstPiece + span.pieces, run = bundle.sourceRun.divisor;
  const std::uint32_t last = bundle.sourceRun.quotient(end - 1);
  for (std::uint32_t at = bundle.sourceRun.quotient(span.firstPiece) + threadIdx.x % 32; at <= last; at += 32) {
    const std::uint32_t first = max(span.firstPiece, at * run), stop = min(end, (at + 1) * run);
    const Place place = placeOf(bundle, first);
    const std::uint64_t from =
        members[place.column * bundle.copies].source + distanceTo(place, bundle.strides) + span.offset * kBulkUnitBytes;
    ptx::cpAsyncBulkLoad(ring.stage(n) + (first - span.firstPiece) * bytes, from, (stop - first) * bytes,
                         ring.barrier(n));
  }
}

// Starts the stores of tile `n`, whose load is over. All lanes; ends their groups of stores.
__device__ inline void startStore(const Bundle& bundle, const Member* members, const TileSpan& span,
                                  const BulkRing& ring, std::uint32_t n) {
  const std::uint32_t bytes = span.units * kBulkUnitBytes;
  for (std::uint32_t piece = threadIdx.x % 32; piece < span.pieces; piece += 32) {
    const Place place = placeOf(bundle, span.firstPiece + piece);
    for (std::uint32_t copy = 0; copy < bundle.copies; copy++) {
      const Member& member = members[place.column * bundle.copies + copy];
      ptx::cpAsyncBulkStore(member.destination + distanceTo(place, member.strides) + span.offset * kBulkUnitBytes,
                            ring.stage(n) + piece * bytes, bytes);
    }
  }
  ptx::cpAsyncBulkCommitGroup();
}

// In: warps 0 to kBulkWarps - 1, their mbarriers initialised. Out: all stores made, and ordered before what the thread does next.
__device__ inline void copyByBulk(const TransferArgs& args, std::uint64_t epoch, const BulkRing& ring) {
  const PartWork& part = args.work.bulk;
  const Member* const members = args.work.members;
  // What peers wrote in stage 0 reached this kernel by ordinary means; the engine must see it.
  ptx::fenceProxyAsync();
  TileCursor load = firstTile(part, kBulkWarps), store = load;
  std::uint32_t loads = 0, stores = 0;
  WarpGate gate{args, epoch};
  const auto loadNext = [&] {
    const Bundle& bundle = part.bundles[load.bundle];
    startLoad(bundle, members + bundle.firstMember, spanOf(bundle, load.tile - load.firstTile), ring, loads++);
    advance(part, load);
  };
  while (loads < kAhead && load.tile < part.tiles) loadNext();
  for (; store.tile < part.tiles; advance(part, store)) {
    const Bundle& bundle = part.bundles[store.bundle];
    if (gate.granted != store.bundle) {
      if (!gate.mayStore(store.bundle, bundle)) break;
      ptx::fenceProxyAsync();
      __syncwarp();
    }
    const TileSpan span = spanOf(bundle, store.tile - store.firstTile);
    ring.awaitLoad(stores);
    startStore(bundle, members + bundle.firstMember, span, ring, stores++);
    if (load.tile < part.tiles) {
      ptx::cpAsyncBulkWaitGroupRead<kStages - kAhead>();
      __syncwarp();
      loadNext();
    }
    gate.wrote(span.pieces, span.units * kBulkUnitBytes, bundle.copies);
  }
  // After a failure too, shared memory must be quiet before the CTA ends.
  while (stores < loads) ring.awaitLoad(stores++);
  ptx::cpAsyncBulkWaitGroup();
  ptx::fenceProxyAsync();
  gate.report();
}

}  // namespace nccl_ext

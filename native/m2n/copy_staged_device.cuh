// SPDX-License-Identifier: Apache-2.0
// Copies tiles that the bulk copy engine can load but not store: it brings words into shared memory, and lanes take runs of any
// length and alignment from there.
#pragma once

#include "m2n/bulk_ring_device.cuh"
#include "m2n/shared/staged.hpp"
#include "m2n/tile_cursor_device.cuh"
#include "runtime/bulk_ptx.cuh"
#include "runtime/ptx.cuh"

namespace nccl_ext {

// Loads from shared memory that a lane has under way.
constexpr int kStagedUnroll = 4;
// Narrow pieces of at least this many bytes are put together to 16-byte words.
constexpr std::uint32_t kMinShiftedBytes = 256;

// A stage of a warp's ring and what its load arrives at.
struct StageRef {
  std::uint8_t* bytes;
  std::uint64_t* loaded;
};

// Starts the load of a tile: the words that hold its source runs. All lanes, converged.
__device__ inline void startStagedLoad(const Bundle& bundle, const Member* members, TileSpan span, StageRef into) {
  const std::uint32_t bytes = span.units * bundle.sourceUnit, runs = stagedRuns(bundle, span);
  const bool last = span.firstPiece + span.pieces == bundle.pieces;
  const std::uint32_t stage = ptx::sharedAddress(into.bytes), barrier = ptx::sharedAddress(into.loaded);
  for (std::uint32_t base = 0; base < runs; base += 32) {
    const std::uint32_t number = base + threadIdx.x % 32, count = min(runs - base, 32u);
    std::uint64_t begin = 0;
    std::uint32_t slot = 0, whole = 0;
    if (number < runs) {
      const StagedRun run = stagedRun(bundle, span, number);
      const std::uint64_t from = sourceOf(bundle, members, span, run.firstPiece), end = from + run.pieces * bytes;
      begin = from / kBulkUnitBytes * kBulkUnitBytes;
      std::uint64_t stop = (end + kBulkUnitBytes - 1) / kBulkUnitBytes * kBulkUnitBytes;
      slot = run.slot;
      if (last && number == runs - 1 && stop != end) {
        // Memory may end with the bundle's last byte.
        stop -= kBulkUnitBytes;
        for (std::uint64_t at = max(stop, from); at < end; at++)
          into.bytes[slot + (at - begin)] = *reinterpret_cast<const std::uint8_t*>(at);
        ptx::fenceProxyAsync();
      }
      whole = static_cast<std::uint32_t>(stop - begin);
    }
    const std::uint32_t total = __reduce_add_sync(kAllLanes, whole);
    if (ptx::electSync()) ptx::mbarrierExpectTx(*into.loaded, total);
    for (std::uint32_t i = 0; i < count; i++) {
      const std::uint64_t from = __shfl_sync(kAllLanes, begin, static_cast<int>(i));
      const std::uint32_t to = stage + __shfl_sync(kAllLanes, slot, static_cast<int>(i));
      const std::uint32_t size = __shfl_sync(kAllLanes, whole, static_cast<int>(i));
      if (size > 0 && ptx::electSync()) ptx::cpAsyncBulkLoad(to, from, size, barrier);
    }
  }
  // Bytes that a lane brought itself are others' to read behind this arrival.
  __syncwarp();
  if (ptx::electSync()) ptx::mbarrierArrive(*into.loaded);
}

// Units of a block that a lane takes one after the other, every 32nd of a column.
template <class Unit>
struct UnitWalk {
  static constexpr std::uint32_t kUnit = sizeof(Unit);
  std::uint32_t units, total;              // of a piece and of a column
  std::uint32_t row, unit;                 // of the lane's first one
  std::uint32_t stepRows, stepUnits;       // from one to the next, the row after it where the piece ends
  std::uint32_t from, fromStep, fromWrap;  // bytes in the stage

  // `perPiece` divides by `units`, unless there is one row.
  __device__ UnitWalk(const Block& block, std::uint32_t units, const FastDiv& perPiece)
      : units(units), total(block.rows * units) {
    const std::uint32_t lane = threadIdx.x % 32;
    row = perPiece.quotient(lane);
    unit = lane - row * units;
    stepRows = perPiece.quotient(32);
    stepUnits = 32 - stepRows * units;
    from = row * block.rowPitch + unit * kUnit;
    fromStep = stepRows * block.rowPitch + stepUnits * kUnit;
    fromWrap = block.rowPitch - units * kUnit;
  }

  // Stores a column whose first piece is at `stage`, an address in shared memory, to `first`, rows `pitch` bytes from each other.
  __device__ void store(std::uint32_t stage, std::uint64_t first, std::uint64_t pitch) const {
    const std::uint64_t toStep = stepRows * pitch + stepUnits * kUnit, toWrap = pitch - units * kUnit;
    std::uint64_t to = first + row * pitch + unit * kUnit;
    std::uint32_t at = unit;
    stage += from;
    for (std::uint32_t i = threadIdx.x % 32; i < total; i += kStagedUnroll * 32) {
      Unit value[kStagedUnroll];
      std::uint64_t place[kStagedUnroll];
#pragma unroll
      for (int u = 0; u < kStagedUnroll; u++) {
        if (i + u * 32 < total) value[u] = ptx::loadShared<Unit>(stage);
        place[u] = to;
        at += stepUnits;
        stage += fromStep;
        to += toStep;
        if (at >= units) {
          at -= units;
          stage += fromWrap;
          to += toWrap;
        }
      }
#pragma unroll
      for (int u = 0; u < kStagedUnroll; u++) {
        if (i + u * 32 < total) __stcs(reinterpret_cast<Unit*>(place[u]), value[u]);
      }
    }
  }
};

// The 16 bytes from byte `shift` of `low` and `high`, which follow each other.
__device__ inline uint4 shiftWord(const uint4& low, const uint4& high, std::uint32_t shift) {
  const bool two = (shift & 8) != 0, one = (shift & 4) != 0;
  const std::uint32_t a = two ? low.z : low.x, b = two ? low.w : low.y, c = two ? high.x : low.z,
                      d = two ? high.y : low.w, e = two ? high.z : high.x, f = two ? high.w : high.y;
  const std::uint32_t v = one ? b : a, w = one ? c : b, x = one ? d : c, y = one ? e : d, z = one ? f : e;
  const std::uint32_t bits = shift % 4 * 8;
  return {__funnelshift_r(v, w, bits), __funnelshift_r(w, x, bits), __funnelshift_r(x, y, bits),
          __funnelshift_r(y, z, bits)};
}

// A piece as whole words of the destination and the bytes before and behind them. `from` is an address in shared memory.
__device__ inline void storeShifted(std::uint32_t from, std::uint64_t to, std::uint32_t bytes) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t head = min(bytes, static_cast<std::uint32_t>(-to) % kBulkUnitBytes);
  const std::uint32_t words = (bytes - head) / kBulkUnitBytes, tail = head + words * kBulkUnitBytes;
  // 16 lanes for each end.
  const std::uint32_t loose = lane < 16 ? lane : tail + lane - 16;
  if (loose < (lane < 16 ? head : bytes))
    *reinterpret_cast<std::uint8_t*>(to + loose) = ptx::loadShared<std::uint8_t>(from + loose);
  const std::uint32_t shift = (from + head) % kBulkUnitBytes;
  from += head - shift + lane * kBulkUnitBytes;
  to += head + lane * kBulkUnitBytes;
  for (std::uint32_t i = lane; i < words; i += 64) {
    const bool second = i + 32 < words;
    uint4 value[2];
#pragma unroll
    for (int u = 0; u < 2; u++) {
      if (u == 1 && !second) break;
      value[u] = ptx::loadShared<uint4>(from + u * 512);
      if (shift != 0) value[u] = shiftWord(value[u], ptx::loadShared<uint4>(from + u * 512 + kBulkUnitBytes), shift);
    }
    __stcs(reinterpret_cast<uint4*>(to), value[0]);
    if (second) __stcs(reinterpret_cast<uint4*>(to + 512), value[1]);
    from += 1024;
    to += 1024;
  }
}

// Calls store(stage, first, pitch) for every column of a block and each of its copies.
template <class Store>
__device__ void eachColumn(const Bundle& bundle, const Member* members, const TileSpan& span, const Block& block,
                           std::uint32_t stage, Store store) {
  const std::uint32_t copies = bundle.copies, all = block.columns * copies;
  const Member* member = members + block.first.column * copies;
  stage += block.stage;
  for (std::uint32_t i = 0, copy = 0; i < all; i++, member++) {
    store(stage, destinationOf(bundle, block, *member, span), static_cast<std::uint64_t>(member->strides[2]));
    if (++copy < copies) continue;
    copy = 0;
    stage += block.columnPitch;
  }
}

template <class Unit>
__device__ void storeUnits(const Bundle& bundle, const Member* members, const TileSpan& span, std::uint32_t stage) {
  eachBlock(bundle, members, span, [&](const Block& block) {
    const UnitWalk<Unit> walk(block, span.units, bundle.perSegment);
    eachColumn(bundle, members, span, block, stage,
               [&](std::uint32_t from, std::uint64_t first, std::uint64_t pitch) { walk.store(from, first, pitch); });
  });
}

__device__ inline void storePieces(const Bundle& bundle, const Member* members, const TileSpan& span,
                                   std::uint32_t stage) {
  const std::uint32_t bytes = span.units * bundle.sourceUnit;
  eachBlock(bundle, members, span, [&](const Block& block) {
    eachColumn(bundle, members, span, block, stage, [&](std::uint32_t from, std::uint64_t first, std::uint64_t pitch) {
      for (std::uint32_t row = 0; row < block.rows; row++)
        storeShifted(from + row * block.rowPitch, first + row * pitch, bytes);
    });
  });
}

// Stores a tile whose load is over. All lanes; out: this lane has read its part of the stage.
__device__ inline void storeStaged(const Bundle& bundle, const Member* members, TileSpan span,
                                   const std::uint8_t* loaded) {
  const std::uint32_t stage = ptx::sharedAddress(loaded);
  if (bundle.sourceUnit < 8 && span.units * bundle.sourceUnit >= kMinShiftedBytes)
    return storePieces(bundle, members, span, stage);
  switch (bundle.sourceUnit) {
    case 16:
      return storeUnits<uint4>(bundle, members, span, stage);
    case 8:
      return storeUnits<uint2>(bundle, members, span, stage);
    case 4:
      return storeUnits<std::uint32_t>(bundle, members, span, stage);
    case 2:
      return storeUnits<std::uint16_t>(bundle, members, span, stage);
    default:
      return storeUnits<std::uint8_t>(bundle, members, span, stage);
  }
}

}  // namespace nccl_ext

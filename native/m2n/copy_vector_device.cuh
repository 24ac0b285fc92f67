// SPDX-License-Identifier: Apache-2.0
// Copies tiles by loads and stores of the widest unit that fits, and converts elements: what the bulk copy engine cannot do.
#pragma once

#include "m2n/grants_device.cuh"
#include "m2n/shared/cast.hpp"
#include "m2n/shared/piece.hpp"

namespace nccl_ext {

// Loads that a lane has under way.
constexpr int kUnroll = 4;

// Source and destination of unit `i` of a tile, for copy `copy`.
struct UnitPlace {
  std::uint64_t source;
  std::uint64_t destination;
};

__device__ inline UnitPlace placeUnit(const Bundle& bundle, const Member* members, const TileSpan& span,
                                      std::uint32_t i, std::uint32_t copy) {
  const std::uint32_t piece = span.pieces == 1 ? 0 : bundle.perSegment.quotient(i);
  const std::uint64_t unit = span.offset + (i - piece * span.units);
  const Place place = placeOf(bundle, span.firstPiece + piece);
  const Member& member = members[place.column * bundle.copies + copy];
  return {member.source + distanceTo(place, bundle.strides) + unit * bundle.sourceUnit,
          member.destination + distanceTo(place, member.strides) + unit * bundle.destinationUnit};
}

// One piece or a part of one: both sides are runs.
template <class Unit>
__device__ void copyRun(const UnitPlace& start, std::uint32_t units) {
  const Unit* from = reinterpret_cast<const Unit*>(start.source) + threadIdx.x % 32;
  Unit* to = reinterpret_cast<Unit*>(start.destination) + threadIdx.x % 32;
  std::uint32_t left = units > threadIdx.x % 32 ? units - threadIdx.x % 32 : 0;
  for (; left > (kUnroll - 1) * 32; left = left > kUnroll * 32 ? left - kUnroll * 32 : 0) {
    Unit value[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; u++) value[u] = __ldcs(from + u * 32);
#pragma unroll
    for (int u = 0; u < kUnroll; u++) __stcs(to + u * 32, value[u]);
    from += kUnroll * 32;
    to += kUnroll * 32;
  }
  for (; left > 0; left = left > 32 ? left - 32 : 0) {
    __stcs(to, __ldcs(from));
    from += 32;
    to += 32;
  }
}

template <class Unit>
__device__ void copyPieces(const Bundle& bundle, const Member* members, const TileSpan& span, std::uint32_t copy) {
  const std::uint32_t total = span.pieces * span.units;
  for (std::uint32_t base = threadIdx.x % 32; base < total; base += kUnroll * 32) {
    Unit value[kUnroll];
    Unit* to[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; u++) {
      const std::uint32_t i = base + u * 32;
      if (i >= total) continue;
      const UnitPlace place = placeUnit(bundle, members, span, i, copy);
      to[u] = reinterpret_cast<Unit*>(place.destination);
      value[u] = __ldcs(reinterpret_cast<const Unit*>(place.source));
    }
#pragma unroll
    for (int u = 0; u < kUnroll; u++) {
      if (base + u * 32 < total) __stcs(to[u], value[u]);
    }
  }
}

template <class Unit>
__device__ void copyTile(const Bundle& bundle, const Member* members, const TileSpan& span) {
  // Copies after the first find the source in the cache.
  for (std::uint32_t copy = 0; copy < bundle.copies; copy++) {
    if (span.pieces == 1)
      copyRun<Unit>(placeUnit(bundle, members, span, 0, copy), span.units);
    else
      copyPieces<Unit>(bundle, members, span, copy);
  }
}

// An element of `bytes` bytes, little-endian; at any address unless `aligned`.
__device__ inline std::uint64_t loadElement(std::uint64_t at, std::uint32_t bytes, bool aligned) {
  if (aligned && bytes == 8) return *reinterpret_cast<const std::uint64_t*>(at);
  if (aligned && bytes == 4) return *reinterpret_cast<const std::uint32_t*>(at);
  if (aligned && bytes == 2) return *reinterpret_cast<const std::uint16_t*>(at);
  std::uint64_t value = 0;
  for (std::uint32_t i = 0; i < bytes; i++)
    value |= std::uint64_t{reinterpret_cast<const std::uint8_t*>(at)[i]} << (8 * i);
  return value;
}

__device__ inline void storeElement(std::uint64_t at, std::uint64_t value, std::uint32_t bytes, bool aligned) {
  if (aligned && bytes == 8) {
    *reinterpret_cast<std::uint64_t*>(at) = value;
  } else if (aligned && bytes == 4) {
    *reinterpret_cast<std::uint32_t*>(at) = static_cast<std::uint32_t>(value);
  } else if (aligned && bytes == 2) {
    *reinterpret_cast<std::uint16_t*>(at) = static_cast<std::uint16_t>(value);
  } else {
    for (std::uint32_t i = 0; i < bytes; i++)
      reinterpret_cast<std::uint8_t*>(at)[i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

__device__ inline void castTile(const Bundle& bundle, const Member* members, const TileSpan& span) {
  const auto from = static_cast<DType>((bundle.transform - 1) / 32),
             to = static_cast<DType>((bundle.transform - 1) % 32);
  const std::uint32_t total = span.pieces * span.units;
  for (std::uint32_t i = threadIdx.x % 32; i < total; i += 32) {
    for (std::uint32_t copy = 0; copy < bundle.copies; copy++) {
      const UnitPlace place = placeUnit(bundle, members, span, i, copy);
      const std::uint64_t value = castBits(from, to, loadElement(place.source, bundle.sourceUnit, bundle.aligned != 0));
      storeElement(place.destination, value, bundle.destinationUnit, bundle.aligned != 0);
    }
  }
}

__device__ inline void moveTile(const Bundle& bundle, const Member* members, TileSpan span) {
  if (bundle.transform != 0) return castTile(bundle, members, span);
  switch (bundle.sourceUnit) {
    case 16:
      return copyTile<uint4>(bundle, members, span);
    case 8:
      return copyTile<uint2>(bundle, members, span);
    case 4:
      return copyTile<unsigned>(bundle, members, span);
    case 2:
      return copyTile<unsigned short>(bundle, members, span);
    default:
      return copyTile<unsigned char>(bundle, members, span);
  }
}

// In: all warps of the CTA, each for itself. Out: stores made in program order of the threads; the CTA's barrier and T3 collect them.
// Not inlined, so that registers of its loops do not push those of the bulk part to memory.
static __device__ __noinline__ void copyByVectors(const TransferArgs& args, std::uint64_t epoch) {
  const PartWork& part = args.work.vector;
  WarpGate gate{args, epoch};
  for (TileWalk walk(part, args.state->taken[1].tiles); walk.more();) {
    const TileRef ref = walk.take();
    const Bundle& bundle = part.bundles[ref.bundle];
    if (!gate.mayStore(ref.bundle, bundle)) break;
    __syncwarp();
    const TileSpan span = spanOf(bundle, ref.tile);
    moveTile(bundle, args.work.members + bundle.firstMember, span);
    gate.wrote(span.pieces, span.units * bundle.destinationUnit, bundle.copies);
  }
  gate.report();
}

}  // namespace nccl_ext

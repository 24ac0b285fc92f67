// SPDX-License-Identifier: Apache-2.0
// What one stage of a transfer copies on one rank, as kernels read it: bundles of moves, cut into tiles of nearly equal
// size that warps take one after the other.
//
//   source row    | column 0 | column 1 | column 2 |      pieces of `inner` units; a bundle holds loops[0] x loops[1] x
//   next row      | column 0 | column 1 | column 2 |      loops[2] such rows (outermost first)
//
// P1 Moves of one bundle have the same loops, inner size, source strides and unit, and lie side by side in a row, so that
//    reading follows the source whatever the destinations are.
// P2 Piece p is column p % columns of row p / columns. A column goes to `copies` places (replicas): it is read once.
// P3 A tile is `perTile` whole pieces, or one of `segments` parts of one piece; pieces and tiles of a part are fewer than
//    2^31, so that all indices are 32-bit (FastDiv).
#pragma once

#include <cstdint>
#include <type_traits>

#include "m2n/shared/fast_div.hpp"

namespace nccl_ext {

// One column and one place where it goes: member firstMember + column * copies + copy of a bundle.
struct alignas(16) Member {
  std::uint64_t source = 0;       // address of its first piece
  std::uint64_t destination = 0;  // address of its first piece, as this rank sees it
  std::int64_t strides[3] = {};   // bytes at the destination, by loop
  std::int32_t peer = 0;          // the rank that receives; this rank itself: a local move
  std::int32_t unused = 0;
};
static_assert(sizeof(Member) == 48 && std::is_trivially_copyable_v<Member>);

inline constexpr std::uint32_t kMaxMembers = 64;  // of one bundle

struct alignas(16) Bundle {
  std::uint64_t inner = 0;         // units of a piece
  std::int64_t strides[3] = {};    // bytes at the source, by loop
  std::uint32_t pieces = 0;        // rows x columns
  std::uint32_t tiles = 0;         // of the bundle
  std::uint32_t perTile = 1;       // pieces of a tile; 1 when segments > 1
  std::uint32_t segmentUnits = 0;  // units of a whole segment; inner when segments is 1
  std::uint32_t firstMember = 0;
  std::uint32_t copies = 1;
  FastDiv columns, loop1, loop2;  // loop 0 is what remains
  FastDiv segments;               // of a piece
  FastDiv sourceRun;              // pieces that follow each other without a gap at the source, from a multiple of it on
  FastDiv perSegment;             // by segmentUnits
  std::uint16_t transform = 0;    // as in contract/m2n.ts
  std::uint8_t sourceUnit = 1;    // bytes of a unit: 16, 8, 4, 2 or 1; of an element when it converts
  std::uint8_t destinationUnit = 1;
  std::uint32_t aligned = 1;  // 0: it converts, and elements lie at any byte
};
static_assert(sizeof(Bundle) == 144 && std::is_trivially_copyable_v<Bundle>);

// Bundles of one copy path, numbered and tiled by themselves.
struct PartWork {
  const Bundle* bundles = nullptr;            // [bundleCount]
  const std::uint32_t* firstTiles = nullptr;  // [bundleCount], ascending
  std::uint32_t bundleCount = 0;
  std::uint32_t tiles =
      0;  // of all bundles; tile t is done by warp t % n of the n warps of the kernel that copy this part
};

struct TransferWork {
  PartWork bulk;    // by the bulk copy engine: units of 16 bytes, tiles of at most kBulkTileBytes
  PartWork vector;  // by loads and stores
  const Member* members = nullptr;
  std::int32_t ctas = 1;  // of the launch
  std::int32_t unused = 0;
};
static_assert(std::is_trivially_copyable_v<TransferWork>);

// The bulk copy engine moves whole units; shorter runs are faster by loads and stores.
inline constexpr std::uint32_t kBulkUnitBytes = 16;
inline constexpr std::uint32_t kMinBulkRun = 128;
// Stages of shared memory and the warps that each have a ring of them. Measured on one H200, 4 ranks to 4, 1 GiB, 32 CTAs per
// source, ms for rows to rows, to columns, to 256-byte runs, to two replicas: 16 warps with stages of 4 KiB 0.57 0.58 0.59 0.88;
// 8 with 8 KiB 0.57 0.59 0.59 0.91; 4 with 16 KiB 0.57 0.59 0.60 0.89, but 3.3 instead of 1.8 for 256-byte runs with 4 CTAs.
inline constexpr std::uint32_t kBulkTileBytes = 4'096;
inline constexpr std::uint32_t kBulkWarps = 16;
inline constexpr std::uint32_t kVectorTileBytes = 8'192;
inline constexpr std::uint32_t kVectorTileUnits = 1'024;  // of narrow units; each costs a thread its own address
inline constexpr std::uint32_t kVectorWarps = 32;

}  // namespace nccl_ext

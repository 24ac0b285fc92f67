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
  std::uint8_t aligned = 1;  // 0: it converts, and elements lie at any byte
  std::uint8_t staged = 0;   // of the bulk part: 1: loaded by the bulk copy engine and stored by lanes (staged.hpp)
  std::uint16_t unused = 0;
};
static_assert(sizeof(Bundle) == 144 && std::is_trivially_copyable_v<Bundle>);

// Bundles of one copy path, numbered and tiled by themselves.
struct PartWork {
  const Bundle* bundles = nullptr;            // [bundleCount]
  const std::uint32_t* firstTiles = nullptr;  // [bundleCount], ascending
  std::uint32_t bundleCount = 0;
  std::uint32_t tiles = 0;  // of all bundles
  std::uint32_t grab = 1;   // tiles that a warp takes at a time
};

struct TransferWork {
  PartWork bulk;    // through shared memory, by the bulk copy engine: tiles of at most bulkTileBytes there
  PartWork vector;  // by loads and stores
  const Member* members = nullptr;
  std::int32_t ctas = 1;   // of the launch
  std::int32_t lanes = 0;  // 1: lanes store something: there are staged bundles or vector ones
};
static_assert(std::is_trivially_copyable_v<TransferWork>);

// The bulk copy engine moves whole units of 16 bytes and starts a copy in about 12 cycles: 256-byte runs are 1.7 times as fast by it as
// by lanes from shared memory.
inline constexpr std::uint32_t kBulkUnitBytes = 16;
inline constexpr std::uint32_t kMinBulkRun = 128;    // bytes at the destination
inline constexpr std::uint32_t kMinStagedRun = 128;  // bytes that follow each other at the source

// A warp has a ring of stages of shared memory, a tile each. Where lanes store, fewer and larger tiles: they cost lanes time.
inline constexpr std::uint32_t kWarps = 16;        // of a CTA
inline constexpr std::uint32_t kVectorWarps = 32;  // of one whose program has no bulk part: its loads wait in registers
inline constexpr std::uint32_t kRingBytes = 12'288;  // of one warp
NCCL_EXT_HD inline constexpr std::uint32_t ringStages(bool lanes) {
  return lanes ? 2 : 3;
}
NCCL_EXT_HD inline constexpr std::uint32_t bulkTileBytes(bool lanes) {
  return kRingBytes / ringStages(lanes);
}
inline constexpr std::uint32_t kVectorTileBytes = 8'192;
inline constexpr std::uint32_t kVectorTileUnits = 1'024;  // of narrow units; each costs a thread its own address

}  // namespace nccl_ext

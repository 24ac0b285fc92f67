// SPDX-License-Identifier: Apache-2.0
// What kernels read that hash a verified transfer: sides of moves, cut into tiles that warps take one after the other.
//
// Groups, runs, words and their numbers are those of core/src/embedded/transfer/group-hash.ts. Only mixWord is another one:
// GPUs shift and multiply by halves of 32 bits. Both ends of a transfer are hashed by one backend, so sums of two backends never meet.
//
// A sender hashes what a stage reads just before it, the receiver what lies in its memory after the last stage.
//
// H1 Sums exist twice, for even and odd epochs: a sender that is one execution ahead of a receiver leaves the sums alone
//    that this one still compares. It cannot be two ahead, because it needs the receiver's grant for the next one; and executions that
//    are skipped, which need none, clear nothing.
// H2 They travel as the bytes do: made before the stage's kernel begins, and behind its arrival (edge T2, m2n/shared/transfer.hpp).
// H3 A slot is what one lane takes at a time: the words of a run that begin in one vector of memory, 16 bytes at a multiple of 16,
//    or one word where the move converts. Slots follow the memory, so that all loads are whole vectors; words follow the run, so
//    that both ends hash alike however their memory is aligned.
// H4 A tile is `perTile` whole runs, or one of `segments` parts of one run; runs and tiles are fewer than 2^31 (FastDiv).
#pragma once

#include "m2n/shared/transfer_args.hpp"

namespace nccl_ext {

// How the slots of a move are read.
enum class HashPath : std::uint8_t {
  kVectors,  // each slot is one vector and two words
  kWords,    // words begin at multiples of 8
  kBytes,    // at any byte
  kCast,     // converts before it hashes
};

// One side of a move.
struct alignas(16) HashMove {
  std::uint64_t address = 0;     // of the first unit of its first run
  std::uint64_t begin = 0;       // first byte of all runs,
  std::uint64_t end = 0;         // and the one behind the last: nothing else is read
  std::uint64_t inner = 0;       // units of a run: bytes, elements when it converts
  std::uint64_t runWords = 0;    // words of a run
  std::uint64_t number = 0;      // of its first word in its group
  std::uint64_t slots = 0;       // of a run
  std::int64_t strides[3] = {};  // bytes, by loop
  std::uint32_t runs = 1;
  std::uint32_t perTile = 1;       // runs of a tile; 1 when segments > 1
  std::uint32_t segmentSlots = 1;  // slots of a whole segment; `slots` when segments is 1
  std::uint32_t group = 0;
  FastDiv loop1, loop2;  // counts; loop 0 is what remains
  FastDiv segments;      // of a run
  FastDiv perRun;        // by segmentSlots
  std::uint16_t transform = 0;
  HashPath path = HashPath::kBytes;
  std::uint8_t aligned = 0;  // 1: of a cast: the elements of each whole word lie where one load reaches them
  std::uint32_t unused = 0;
};
static_assert(sizeof(HashMove) == 160 && std::is_trivially_copyable_v<HashMove>);

// From this many slots on, a warp hashes one run after the other; shorter runs are hashed together, which costs more per slot.
inline constexpr std::uint32_t kLongRunSlots = 256;
inline constexpr std::uint32_t kHashWarps = 32;  // of a CTA

// Sums of the groups of one side: [2][groups], even epochs first.
struct HashSums {
  std::uint64_t* sums = nullptr;
  std::uint32_t groups = 0;
};

// Hashes of one execution, each with a counter of its own: the sources of either stage, and what was received.
inline constexpr int kHashes = kTransferStages + 1;
using HashTaken = TransferState::Taken;

struct HashArgs {
  const HashMove* moves;            // [moveCount]
  const std::uint32_t* firstTiles;  // [moveCount], ascending
  HashTaken* taken;                 // tiles of this hash that warps took; 0 when it begins
  HashSums into;
  std::uint32_t moveCount;
  std::uint32_t tiles;  // of all moves
  std::int32_t begun;   // 1: before the epoch of the execution is counted
  const TransferState* state;
  DeviceStatus* status;
  RankWords* rankWords;
};

NCCL_EXT_HD inline std::uint64_t* sumsOf(const HashSums& side, std::uint64_t epoch) {
  return side.sums + (epoch & 1) * side.groups;
}

// A bijection: a step folds the upper half into the lower one and adds an even multiple of that to the whole, two instructions of a
// GPU. For words a and b at places with keys i and j, changed places cancel out where mix(a + i) - mix(b + i) equals mix(a + j) -
// mix(b + j): of 2^23 keys no two did for any of 8 pairs a, b; with two steps some did.
NCCL_EXT_HD inline std::uint64_t mixStep(std::uint64_t x, std::uint32_t even) {
  x ^= x >> 32;
  return x + std::uint64_t{static_cast<std::uint32_t>(x)} * even;
}
NCCL_EXT_HD inline std::uint64_t mixWord(std::uint64_t x) {
  x = mixStep(mixStep(mixStep(x, 0x9e37'79b8), 0x85eb'ca6a), 0xc2b2'ae34);
  return x ^ x >> 32;
}

// What is added to a word before it is mixed, from one number to the next.
inline constexpr std::uint64_t kHashStep = 0x9e3779b97f4a7c15;

// Of word `number` of a group.
NCCL_EXT_HD inline std::uint64_t hashKey(std::uint64_t number) {
  return (number + 1) * kHashStep;
}

}  // namespace nccl_ext

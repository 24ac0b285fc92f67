// SPDX-License-Identifier: Apache-2.0
// The hash that a verified transfer compares, word by word. What it is, for every backend, stands in
// core/src/embedded/transfer/group-hash.ts: a sum of mixed 8-byte words, which needs no order.
//
// A sender hashes what a stage reads just before it, the receiver what lies in its memory after the last stage.
//
// H1 Sums exist twice, for even and odd epochs: a sender that is one execution ahead of a receiver leaves the sums alone
//    that this one still compares. It cannot be two ahead, because it needs the receiver's grant for the next one; and executions that
//    are skipped, which need none, clear nothing.
// H2 They travel as the bytes do: made before the stage's kernel begins, and behind its arrival (edge T2, m2n/shared/transfer.hpp).
#pragma once

#include <cstring>

#include "m2n/shared/cast.hpp"
#include "m2n/shared/transfer_args.hpp"

namespace nccl_ext {

// One side of a move.
struct alignas(16) HashMove {
  std::uint64_t address = 0;  // of its first unit
  std::uint64_t inner = 0;    // units of a run
  std::uint64_t counts[3] = {1, 1, 1};
  std::int64_t strides[3] = {};  // bytes, by loop
  std::uint64_t number = 0;      // of its first word in its group
  std::uint64_t before = 0;      // words of the moves before it in the list
  std::uint64_t runWords = 0;
  std::uint32_t group = 0;
  std::uint16_t transform = 0;  // converts before it hashes
  std::uint16_t unused = 0;
};
static_assert(sizeof(HashMove) == 96);

// What must have arrived from one sender for one tensor.
struct HashCheck {
  std::uint64_t sent = 0;  // address of the sender's sum for even epochs
  std::uint64_t odd = 0;   // bytes from there to that for odd ones
  std::int32_t sender = 0;
  std::int32_t tensor = 0;
  std::int32_t stage = 0;
  std::int32_t unused = 0;
};

// Sums of the groups of one side: [2][groups], even epochs first.
struct HashSums {
  std::uint64_t* sums = nullptr;
  std::uint32_t groups = 0;
};

struct HashArgs {
  const HashMove* moves;  // [moveCount]
  HashSums into;
  std::uint64_t words;  // of all moves
  std::uint32_t moveCount;
  std::int32_t begun;  // 1: before the epoch of the execution is counted
  const TransferState* state;
  DeviceStatus* status;
  RankWords* rankWords;
};

NCCL_EXT_HD inline std::uint64_t* sumsOf(const HashSums& side, std::uint64_t epoch) {
  return side.sums + (epoch & 1) * side.groups;
}

NCCL_EXT_HD inline std::uint64_t mixWord(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 27;
  x *= 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// Up to 8 bytes from anywhere, as a little-endian word.
NCCL_EXT_HD inline std::uint64_t loadWord(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 8 && address % 8 == 0) return *reinterpret_cast<const std::uint64_t*>(address);
  std::uint64_t word = 0;
  for (std::uint64_t i = 0; i < bytes; i++)
    word |= std::uint64_t{reinterpret_cast<const std::uint8_t*>(address)[i]} << (8 * i);
  return word;
}

NCCL_EXT_HD inline std::uint64_t hashBytesOf(DType type) {
  switch (type) {
    case DType::kF64:
      return 8;
    case DType::kF32:
      return 4;
    case DType::kF16:
    case DType::kBf16:
      return 2;
    default:
      return 1;
  }
}

// Word `index` of a run that begins at `run`, in bytes of the destination.
NCCL_EXT_HD inline std::uint64_t wordOf(const HashMove& move, std::uint64_t run, std::uint64_t index) {
  if (move.transform == 0) {
    const std::uint64_t left = move.inner - index * 8;
    return loadWord(run + index * 8, left < 8 ? left : 8);
  }
  const auto from = static_cast<DType>((move.transform - 1) / 32), to = static_cast<DType>((move.transform - 1) % 32);
  const std::uint64_t fromBytes = hashBytesOf(from), toBytes = hashBytesOf(to), each = 8 / toBytes;
  std::uint64_t word = 0;
  for (std::uint64_t i = 0; i < each && index * each + i < move.inner; i++) {
    const std::uint64_t bits = loadWord(run + (index * each + i) * fromBytes, fromBytes);
    word |= castBits(from, to, bits) << (8 * toBytes * i);
  }
  return word;
}

// What word `index` of a move, counted through its runs, adds to the sum of its group.
NCCL_EXT_HD inline std::uint64_t hashWord(const HashMove& move, std::uint64_t index) {
  const std::uint64_t row = index / move.runWords, inRun = index - row * move.runWords;
  const std::uint64_t outer = row / move.counts[2], outermost = outer / move.counts[1];
  const std::uint64_t run = move.address + outermost * static_cast<std::uint64_t>(move.strides[0]) +
                            (outer - outermost * move.counts[1]) * static_cast<std::uint64_t>(move.strides[1]) +
                            (row - outer * move.counts[2]) * static_cast<std::uint64_t>(move.strides[2]);
  return mixWord(wordOf(move, run, inRun) + (move.number + index + 1) * 0x9e3779b97f4a7c15);
}

// The move that word `index` of the list belongs to.
NCCL_EXT_HD inline std::uint32_t moveAt(const HashArgs& args, std::uint64_t index) {
  std::uint32_t first = 0, end = args.moveCount;
  while (end - first > 1) {
    const std::uint32_t middle = first + (end - first) / 2;
    if (args.moves[middle].before <= index)
      first = middle;
    else
      end = middle;
  }
  return first;
}

// Adds every `step`-th word from `first` on, below `end`; `add` takes a group and what it gains.
template <class Add>
NCCL_EXT_HD inline void hashWords(const HashArgs& args, std::uint64_t first, std::uint64_t end, std::uint64_t step,
                                  Add add) {
  if (first >= end) return;
  std::uint32_t at = moveAt(args, first);
  std::uint64_t sum = 0;
  std::uint32_t group = args.moves[at].group;
  for (std::uint64_t index = first; index < end; index += step) {
    while (at + 1 < args.moveCount && args.moves[at + 1].before <= index) at++;
    if (args.moves[at].group != group) {
      add(group, sum);
      group = args.moves[at].group;
      sum = 0;
    }
    sum += hashWord(args.moves[at], index - args.moves[at].before);
  }
  add(group, sum);
}

struct CompareArgs {
  const HashCheck* checks;  // [received.groups]
  HashSums received;
  HashSums sent;  // cleared with `received` before an execution
  TransferState* state;
  TransferCounts* counts;
  DeviceStatus* status;
  RankWords* words;
};

// By one thread: takes back that the stage's kernel has counted the execution as one without an error.
NCCL_EXT_HD inline void discount(const CompareArgs& args) {
  put<kSystem>(args.counts->completed, --args.state->completed);
}

// Compares one group at the end of execution `epoch`; whether it arrived as it was sent. A difference leaves a record.
NCCL_EXT_HD inline bool compareGroup(const CompareArgs& args, std::uint32_t group, std::uint64_t epoch) {
  const HashCheck& check = args.checks[group];
  const std::uint64_t sent = peek<kSystem>(*reinterpret_cast<std::uint64_t*>(check.sent + (epoch & 1) * check.odd));
  const std::uint64_t arrived = sumsOf(args.received, epoch)[group];
  if (sent == arrived) return true;
  DeviceStatus record;
  record.code = static_cast<std::int32_t>(ErrorCode::kVerify);
  record.op = static_cast<std::int32_t>(DeviceOp::kTransfer);
  record.peer = check.sender;
  record.missing = check.tensor * 2 + check.stage;
  record.expected = sent;
  record.seen = arrived;
  report(*args.status, record);
  return false;
}

}  // namespace nccl_ext

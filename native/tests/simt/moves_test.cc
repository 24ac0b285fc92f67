// SPDX-License-Identifier: Apache-2.0
// Fills and copies of the runtime: every byte, no other one, and none behind a failure.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "runtime/moves.hpp"

namespace nccl_ext::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct Moves {
  DeviceStatus status;
  RankWords words;
  Guard guard{&status, &words, DeviceOp::kCopy};
  std::mt19937_64 random{7};

  Bytes bytes(std::size_t count) {
    Bytes out(count);
    for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(random());
    return out;
  }
};

// Small ones at every alignment, and some for several CTAs and turns of their loops.
template <class Check>
void eachSize(Check check) {
  for (std::size_t round = 0; round < 140; round++) {
    simt::machine().reset(round);
    check(round < 128 ? 1 + round : (round - 127) * 70'000 + round, round % 16, round * 7 / 3 % 16);
  }
}

TEST(SimtMoves, FillsEveryByte) {
  Moves moves;
  eachSize([&](std::size_t bytes, std::size_t skew, std::size_t) {
    Bytes memory = moves.bytes(bytes + 48), expected = memory;
    std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(skew), bytes, std::uint8_t{0x5c});
    launchFill(moves.guard, memory.data() + skew, 0x15c, bytes, nullptr);
    ASSERT_EQ(simt::machine().run(), "");
    ASSERT_EQ(memory, expected) << bytes << " bytes at " << skew;
  });
}

TEST(SimtMoves, CopiesEveryByte) {
  Moves moves;
  eachSize([&](std::size_t bytes, std::size_t skew, std::size_t other) {
    const std::size_t from = bytes > 128 && bytes % 2 == 0 ? skew : other;
    const Bytes source = moves.bytes(from + bytes);
    Bytes memory = moves.bytes(bytes + 48), expected = memory;
    std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(skew));
    launchCopy(moves.guard, memory.data() + skew, source.data() + from, bytes, nullptr);
    ASSERT_EQ(simt::machine().run(), "");
    ASSERT_EQ(memory, expected) << bytes << " bytes from " << from << " to " << skew;
  });
}

TEST(SimtMoves, LeavesMemoryAloneBehindAFailure) {
  Moves moves;
  simt::machine().reset(3);
  moves.words.drained = 1;
  const Bytes source = moves.bytes(200'000), before = moves.bytes(200'000);
  Bytes memory = before;
  launchFill(moves.guard, memory.data(), 1, memory.size(), nullptr);
  launchCopy(moves.guard, memory.data(), source.data(), memory.size(), nullptr);
  ASSERT_EQ(simt::machine().run(), "");
  EXPECT_EQ(memory, before);
  EXPECT_EQ(moves.status.code, static_cast<int>(ErrorCode::kPoisoned));
  clear(moves.status);
  moves.words.stop = static_cast<int>(ErrorCode::kAborted);
  launchNote(moves.guard, nullptr);
  ASSERT_EQ(simt::machine().run(), "");
  EXPECT_EQ(moves.status.code, static_cast<int>(ErrorCode::kAborted));
  EXPECT_EQ(moves.status.seen, static_cast<std::uint64_t>(Skipped::kRanAllTheSame));
}

}  // namespace
}  // namespace nccl_ext::test

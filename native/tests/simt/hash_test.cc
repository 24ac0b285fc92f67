// SPDX-License-Identifier: Apache-2.0
// The kernels that hash a verified transfer, against sums byte by byte; and what a comparison of different sums leaves.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "m2n/hash.hpp"

namespace nccl_ext::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct Random {
  std::mt19937_64 engine;
  std::uint64_t pick(std::uint64_t below) { return engine() % below; }
};

constexpr DType kFloats[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBf16, DType::kF8e4m3, DType::kF8e5m2};

// A move within `memory`, which it fills with random bytes and whose ends it touches.
HashMove randomMove(Random& random, Bytes& memory) {
  HashMove move;
  std::uint64_t unit = 1, wordUnit = 1;
  if (random.pick(3) == 0) {
    const std::size_t from = random.pick(6), to = (from + 1 + random.pick(5)) % 6;
    move.transform = castTransform(kFloats[from], kFloats[to]);
    unit = hashBytesOf(kFloats[from]);
    wordUnit = hashBytesOf(kFloats[to]);
  }
  move.inner = 1 + random.pick(random.pick(4) == 0 ? 3000 : 70);
  std::uint64_t reach = move.inner * unit;
  for (std::size_t loop = 3; loop-- > 0;) {
    move.counts[loop] = 1 + random.pick(4);
    move.strides[loop] = static_cast<std::int64_t>(reach + random.pick(3) * 8);
    reach += static_cast<std::uint64_t>(move.strides[loop]) * (move.counts[loop] - 1);
  }
  const std::uint64_t skew = random.pick(16);
  memory.resize(skew + reach);
  for (std::uint8_t& byte : memory) byte = static_cast<std::uint8_t>(random.engine());
  move.address = reinterpret_cast<std::uint64_t>(memory.data()) + skew;
  move.runWords = (move.inner * wordUnit + 7) / 8;
  return move;
}

std::uint64_t mixed(std::uint64_t word) {
  word = (word ^ word >> 30) * 0xbf58'476d'1ce4'e5b9;
  word = (word ^ word >> 27) * 0x94d0'49bb'1331'11eb;
  return word ^ word >> 31;
}

// The bytes of a run at the destination.
Bytes runBytes(const HashMove& move, std::uint64_t address) {
  if (move.transform == 0) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(address);
    return Bytes(bytes, bytes + move.inner);
  }
  const auto from = static_cast<DType>((move.transform - 1) / 32), to = static_cast<DType>((move.transform - 1) % 32);
  Bytes out;
  for (std::uint64_t i = 0; i < move.inner; i++) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const void*>(address + i * hashBytesOf(from)), hashBytesOf(from));
    bits = castBits(from, to, bits);
    for (std::uint64_t byte = 0; byte < hashBytesOf(to); byte++)
      out.push_back(static_cast<std::uint8_t>(bits >> (8 * byte)));
  }
  return out;
}

std::uint64_t oracle(const HashMove& move) {
  std::uint64_t sum = 0, number = move.number;
  for (std::uint64_t run = 0; run < move.counts[0] * move.counts[1] * move.counts[2]; run++) {
    const std::uint64_t index[3] = {run / (move.counts[1] * move.counts[2]), run / move.counts[2] % move.counts[1],
                                    run % move.counts[2]};
    std::uint64_t address = move.address;
    for (std::size_t loop = 0; loop < 3; loop++)
      address += index[loop] * static_cast<std::uint64_t>(move.strides[loop]);
    const Bytes bytes = runBytes(move, address);
    for (std::size_t first = 0; first < bytes.size(); first += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + first, std::min<std::size_t>(8, bytes.size() - first));
      sum += mixed(word + ++number * 0x9e37'79b9'7f4a'7c15);
    }
  }
  return sum;
}

TEST(SimtHash, SumsRandomMovesAndComparesThem) {
  for (unsigned round = 0; round < 40; round++) {
    simt::machine().reset(round);
    Random random{std::mt19937_64(500 + round)};
    std::vector<Bytes> memories(1 + random.pick(20));
    std::vector<HashMove> moves;
    std::vector<std::uint64_t> expected;
    std::uint64_t words = 0;
    for (std::size_t i = 0; i < memories.size(); i++) {
      HashMove move = randomMove(random, memories[i]);
      move.group = static_cast<std::uint32_t>(i / 3);
      move.before = words;
      move.number = random.pick(1000);
      words += move.runWords * move.counts[0] * move.counts[1] * move.counts[2];
      expected.resize(move.group + 1);
      expected[move.group] += oracle(move);
      moves.push_back(move);
    }
    const auto groups = static_cast<std::uint32_t>(expected.size());
    std::vector<std::uint64_t> sums(2 * groups, 99), sent = expected;
    sent.resize(2 * groups);
    std::copy_n(sent.begin(), groups, sent.begin() + groups);
    TransferState state;
    state.epoch = round;
    state.completed = 5;
    TransferCounts counts;
    DeviceStatus status;
    RankWords rankWords;
    std::vector<HashCheck> checks(groups);
    for (std::uint32_t i = 0; i < groups; i++)
      checks[i] = {reinterpret_cast<std::uint64_t>(&sent[i]), groups * sizeof sent[0], 3, static_cast<int>(i), 1, 0};
    const CompareArgs compare{checks.data(), {sums.data(), groups}, {}, &state, &counts, &status, &rankWords};
    const HashArgs args{moves.data(), compare.received, words,     static_cast<std::uint32_t>(moves.size()), 1,
                        &state,       &status,          &rankWords};
    launchClearHashes(compare, nullptr);
    launchHash(args, static_cast<int>(1 + random.pick(4)), nullptr);
    ASSERT_EQ(simt::machine().run(), "");
    for (std::uint32_t i = 0; i < groups; i++) {
      ASSERT_EQ(sumsOf(compare.received, state.epoch + 1)[i], expected[i]) << "round " << round << ", group " << i;
      ASSERT_EQ(sumsOf(compare.received, state.epoch)[i], 99u);
    }
    state.epoch++;
    launchCompareHashes(compare, nullptr);
    ASSERT_EQ(simt::machine().run(), "");
    EXPECT_EQ(status.code, 0);
    EXPECT_EQ(state.completed, 5u);
    const std::uint32_t odd = static_cast<std::uint32_t>(random.pick(groups));
    sumsOf(compare.received, state.epoch)[odd]++;
    launchCompareHashes(compare, nullptr);
    ASSERT_EQ(simt::machine().run(), "");
    EXPECT_EQ(status.code, static_cast<int>(ErrorCode::kVerify));
    EXPECT_EQ(status.missing, static_cast<int>(odd) * 2 + 1);
    EXPECT_EQ(state.completed, 4u);
  }
}

}  // namespace
}  // namespace nccl_ext::test

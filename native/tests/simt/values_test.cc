// SPDX-License-Identifier: Apache-2.0
// Made-up values by warps that share runs, against one lane of the host (host/values_test.cc compares that with TypeScript).
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "values/shared/value_tile.hpp"

extern "C" void write_values(std::uint8_t*, const nccl_ext::ValueBox*, std::uint32_t, std::uint64_t);
extern "C" void compare_values(const std::uint8_t*, const nccl_ext::ValueBox*, std::uint32_t, std::uint64_t,
                               nccl_ext::ValueDifference*);

namespace nccl_ext::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct Boxes {
  std::vector<ValueBox> boxes;
  std::uint64_t tiles = 0, bytes = 0;

  explicit Boxes(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    constexpr DType kTypes[] = {DType::kF32, DType::kBf16, DType::kF8e4m3, DType::kF64};
    for (int i = 0; i < 6; i++) {
      ValueBox box;
      box.from = box.to = static_cast<std::uint32_t>(kTypes[random() % 4]);
      const std::uint64_t size = bytesOfDType(box.from);
      box.inner = 1 + random() % (i % 2 == 0 ? 900 : 40);
      box.segment = random() % 2 == 0 ? box.inner : 1 + random() % box.inner;
      box.rows = box.segment == box.inner ? 1 + static_cast<std::uint32_t>(random() % 3) : 1;
      box.counts[2] = 1 + random() % 9;
      box.localStrides[2] = (box.inner + random() % 5) * size;
      box.elementStrides[2] = box.inner * 3;
      box.element = random() % 1'000'000;
      box.seed = static_cast<std::uint32_t>(random());
      box.evenMask = box.oddMask = 0xbfbf'bfbf;
      box.local = bytes + random() % 16 * size;
      bytes = (box.local + box.localStrides[2] * box.counts[2] + 64) / 8 * 8;
      box.firstTile = tiles;
      tiles += (box.inner + box.segment - 1) / box.segment * ((box.counts[2] + box.rows - 1) / box.rows);
      boxes.push_back(box);
    }
  }
};

TEST(SimtValues, WritesAndFindsWhatOneLaneDoes) {
  for (std::uint64_t seed = 0; seed < 12; seed++) {
    simt::machine().reset(seed);
    const Boxes made(seed);
    const auto count = static_cast<std::uint32_t>(made.boxes.size());
    Bytes memory(made.bytes, 0xee), expected = memory;
    for (std::uint64_t tile = 0; tile < made.tiles; tile++)
      writeTile(expected.data(), boxOfTile(made.boxes.data(), count, tile), tile, {0, 1});
    const simt::Launch launch{3, 256, 0, nullptr};
    simt::launch(write_values, launch, memory.data(), made.boxes.data(), count, made.tiles);
    ASSERT_EQ(simt::machine().run(), "");
    ASSERT_EQ(memory, expected) << "seed " << seed;

    const std::uint64_t first = made.boxes[1].local, last = made.boxes[4].local + 1;
    memory[last] ^= 1;
    memory[first] ^= 0x80;
    ValueDifference found;
    simt::launch(compare_values, launch, memory.data(), made.boxes.data(), count, made.tiles, &found);
    ASSERT_EQ(simt::machine().run(), "");
    EXPECT_EQ(found.bytes, made.boxes[4].inner * bytesOfDType(made.boxes[4].to) > 1 ? 2u : 1u);
    EXPECT_EQ(found.first, first);
  }
}

}  // namespace
}  // namespace nccl_ext::test

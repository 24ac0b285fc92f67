// SPDX-License-Identifier: Apache-2.0
// Made-up values against syntheticValues of m2n: hashes of the bytes that both make, also beyond 2^32 words and at odd places.
#include <gtest/gtest.h>

#include <vector>

#include "values/shared/value_tile.hpp"

namespace nccl_ext {
namespace {

constexpr std::uint64_t kElements = 4099;

struct Golden {
  std::uint32_t dtype;
  std::uint64_t start;
  std::uint32_t seed, even, odd;
  std::uint32_t hash;  // FNV-1a of the bytes; printed by values_golden.mjs
};
constexpr Golden kGolden[] = {
    {0, 0, 0x2be8c9f1, 0xffffffff, 0xbfffffff, 0xe9abb667},
    {0, 4093, 0x2be8c9f1, 0xffffffff, 0xbfffffff, 0xe14050e7},
    {0, 17179868184, 0x2be8c9f1, 0xffffffff, 0xbfffffff, 0xc17c8b2a},
    {1, 0, 0x2be8c9f1, 0xbfffffff, 0xbfffffff, 0x18ac21d2},
    {1, 4093, 0x2be8c9f1, 0xbfffffff, 0xbfffffff, 0x3b691354},
    {1, 17179868184, 0x2be8c9f1, 0xbfffffff, 0xbfffffff, 0xa68d59da},
    {3, 0, 0x2be8c9f1, 0xbfffbfff, 0xbfffbfff, 0x27fe48a3},
    {3, 4093, 0x2be8c9f1, 0xbfffbfff, 0xbfffbfff, 0x215443ab},
    {3, 17179868184, 0x2be8c9f1, 0xbfffbfff, 0xbfffbfff, 0x17589207},
    {4, 0, 0x2be8c9f1, 0xbfbfbfbf, 0xbfbfbfbf, 0xd88f53d4},
    {4, 4093, 0x2be8c9f1, 0xbfbfbfbf, 0xbfbfbfbf, 0x857de415},
    {4, 17179868184, 0x2be8c9f1, 0xbfbfbfbf, 0xbfbfbfbf, 0x9510e3f4},
    {7, 0, 0x2be8c9f1, 0xffffffff, 0xffffffff, 0x38926067},
    {7, 4093, 0x2be8c9f1, 0xffffffff, 0xffffffff, 0xb51366a7},
    {7, 17179868184, 0x2be8c9f1, 0xffffffff, 0xffffffff, 0x1b27392a},
    {14, 0, 0x2be8c9f1, 0xffffffff, 0xffffffff, 0x17715f94},
    {14, 4093, 0x2be8c9f1, 0xffffffff, 0xffffffff, 0x2e9ffa15},
    {14, 17179868184, 0x2be8c9f1, 0xffffffff, 0xffffffff, 0x0d4cd334},
    {15, 0, 0x2be8c9f1, 0x01010101, 0x01010101, 0x465626a0},
    {15, 4093, 0x2be8c9f1, 0x01010101, 0x01010101, 0x04c796e5},
    {15, 17179868184, 0x2be8c9f1, 0x01010101, 0x01010101, 0x1773e6c8},
};

ValueBox boxOf(const Golden& golden) {
  ValueBox box;
  box.element = golden.start;
  box.inner = box.segment = kElements;
  box.rows = 1;
  box.seed = golden.seed;
  box.evenMask = golden.even;
  box.oddMask = golden.odd;
  box.from = box.to = golden.dtype;
  return box;
}

std::uint32_t hashOf(const std::uint8_t* bytes, std::size_t count) {
  std::uint32_t hash = 0x811c'9dc5;
  for (std::size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 0x0100'0193;
  return hash;
}

TEST(Values, EqualThoseOfTypeScriptWhereverTheyLie) {
  for (const Golden& golden : kGolden) {
    const std::size_t bytes = kElements * bytesOfDType(golden.dtype);
    for (const std::size_t skew : {0, 1, 6, 12}) {
      ValueBox box = boxOf(golden);
      box.local = skew;
      std::vector<std::uint8_t> memory(bytes + 64, 0xcd);
      // Lanes in turn, as a warp has them at once.
      for (std::uint32_t lane = 0; lane < 32; lane++) writeTile(memory.data(), box, 0, {lane, 32});
      EXPECT_EQ(hashOf(memory.data() + skew, bytes), golden.hash) << golden.dtype << " from " << golden.start;
      EXPECT_EQ(memory[skew + bytes], 0xcd);
      ValueDifference found;
      compareTile(memory.data(), box, 0, {0, 1}, found);
      EXPECT_EQ(found.bytes, 0u);
    }
  }
}

TEST(Values, NameTheFirstByteThatDiffersAndCountAll) {
  ValueBox box = boxOf(kGolden[3]);
  box.inner = box.segment = 100;
  box.counts[1] = 3;
  box.counts[2] = 5;
  box.localStrides[1] = 5 * 512;
  box.localStrides[2] = 512;
  box.elementStrides[1] = 7000;
  box.elementStrides[2] = 1000;
  box.rows = 4;
  std::vector<std::uint8_t> memory(3 * 5 * 512);
  for (std::uint64_t tile = 0; tile < 4; tile++) writeTile(memory.data(), box, tile, {0, 1});
  for (const std::size_t place : {512 * 3 + 401, 512 * 3 + 7, 512 * 14 + 399, 512 * 9}) memory[place] ^= 0x10;
  ValueDifference found;
  for (std::uint64_t tile = 0; tile < 4; tile++) compareTile(memory.data(), box, tile, {0, 1}, found);
  EXPECT_EQ(found.bytes, 3u) << "gaps between rows are nobody's";
  EXPECT_EQ(found.first, 512u * 3 + 7);
}

}  // namespace
}  // namespace nccl_ext

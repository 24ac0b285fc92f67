// SPDX-License-Identifier: Apache-2.0
// castBits against castArray of core/src/dtype: hashes of what both make of the same random bits, for every pair of dtypes.
#include <gtest/gtest.h>

#include "m2n/shared/cast.hpp"

namespace nccl_ext {
namespace {

constexpr int kCount = 1 << 16;

struct Golden {
  int from, to;
  std::uint32_t hash;  // FNV-1a of the destination's bytes; printed by cast_golden.mjs
};
constexpr Golden kGolden[] = {
    {0, 1, 0x4a306b60}, {0, 2, 0x90e1b043}, {0, 3, 0x35eb8546}, {0, 4, 0x4b24a8e7}, {0, 5, 0x105f267c},
    {1, 0, 0xf0507422}, {1, 2, 0xf4e42929}, {1, 3, 0x9900a011}, {1, 4, 0x90b05381}, {1, 5, 0xfce0cfd5},
    {2, 0, 0x6237d9e2}, {2, 1, 0xf9714d28}, {2, 3, 0x623ac322}, {2, 4, 0xd6c62e05}, {2, 5, 0x920982e7},
    {3, 0, 0xbf14b08e}, {3, 1, 0x8fbbddd4}, {3, 2, 0xdc00a833}, {3, 4, 0x74089eda}, {3, 5, 0x863e7926},
    {4, 0, 0x6e29b764}, {4, 1, 0x94af3733}, {4, 2, 0x2472a9ba}, {4, 3, 0x15289639}, {4, 5, 0x56a32953},
    {5, 0, 0x2fd4ea83}, {5, 1, 0x98aac80d}, {5, 2, 0x4a4d8953}, {5, 3, 0x7fe47289}, {5, 4, 0x71044010},
};

// As in cast_golden.mjs: random bits; f64 often near the exponents of narrower types, wide types often halfway between two values.
std::uint64_t inputOf(int from, int index, std::uint64_t random) {
  const std::uint64_t width = kDTypeBytes[from] * 8;
  if (from == static_cast<int>(DType::kF64) && index % 2 == 0) {
    random = (random & 0x800f'ffff'ffff'ffff) | ((850 + (random >> 52) % 340) << 52);
    if (index % 8 == 0) random &= 0xffff'f800'0000'0000;
  }
  if (from == static_cast<int>(DType::kF32) && index % 8 == 0) random &= 0xfff8'0000;
  return width == 64 ? random : random & ((std::uint64_t{1} << width) - 1);
}

TEST(CastBits, EqualsTheEmbeddedBackend) {
  for (const Golden& golden : kGolden) {
    std::uint64_t state = static_cast<std::uint64_t>(golden.from * 6 + golden.to + 1);
    std::uint32_t hash = 0x811c'9dc5;
    for (int index = 0; index < kCount; index++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      std::uint64_t bits = inputOf(golden.from, index, state ^ (state >> 29));
      bits = castBits(static_cast<DType>(golden.from), static_cast<DType>(golden.to), bits);
      for (std::size_t byte = 0; byte < kDTypeBytes[golden.to]; byte++)
        hash = (hash ^ static_cast<std::uint8_t>(bits >> (8 * byte))) * 0x0100'0193;
    }
    EXPECT_EQ(hash, golden.hash) << "dtype " << golden.from << " to dtype " << golden.to;
  }
}

}  // namespace
}  // namespace nccl_ext

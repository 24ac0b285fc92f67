// SPDX-License-Identifier: Apache-2.0
// The values that a refit makes up, as bytes: what syntheticValues of m2n/src/refit/values.ts gives, bit for bit.
#pragma once

#include <cstdint>

#include "runtime/shared/qualifiers.hpp"

namespace nccl_ext {

// The finaliser of MurmurHash3.
NCCL_EXT_HD inline constexpr std::uint32_t mixBits(std::uint32_t h) {
  h = (h ^ h >> 16) * 0x85eb'ca6b;
  h = (h ^ h >> 13) * 0xc2b2'ae35;
  return h ^ h >> 16;
}

// Word w of a tensor's bytes is a mix of the tensor's seed and w, masked by w's parity.
class ValueWords {
 public:
  NCCL_EXT_HD ValueWords(std::uint32_t seed, std::uint32_t evenMask, std::uint32_t oddMask)
      : seed_(seed), even_(evenMask), odd_(oddMask), key_(mixBits(seed)) {}

  NCCL_EXT_HD std::uint32_t at(std::uint64_t word) {
    const auto high = static_cast<std::uint32_t>(word >> 32);
    if (high != high_) {
      high_ = high;
      key_ = mixBits(seed_ ^ high);
    }
    return mixBits(key_ ^ static_cast<std::uint32_t>(word)) & ((word & 1) == 0 ? even_ : odd_);
  }

  NCCL_EXT_HD std::uint8_t byteAt(std::uint64_t byte) {
    return static_cast<std::uint8_t>(at(byte / 4) >> (8 * (byte % 4)));
  }

  // `bytes` bytes (1, 2, 4 or 8) from a multiple of their number on, little-endian.
  NCCL_EXT_HD std::uint64_t elementAt(std::uint64_t byte, std::uint32_t bytes) {
    if (bytes == 8) return at(byte / 4) | std::uint64_t{at(byte / 4 + 1)} << 32;
    const std::uint64_t word = at(byte / 4) >> (8 * (byte % 4));
    return bytes == 4 ? word : word & ((1u << 8 * bytes) - 1);
  }

  // Four words from any byte on.
  NCCL_EXT_HD void quadAt(std::uint64_t byte, std::uint32_t (&words)[4]) {
    const std::uint64_t first = byte / 4;
    const auto shift = static_cast<std::uint32_t>(8 * (byte % 4));
    std::uint32_t low = at(first);
    for (int i = 0; i < 4; i++) {
      const std::uint32_t high = shift == 0 && i == 3 ? 0 : at(first + 1 + static_cast<std::uint64_t>(i));
      words[i] = shift == 0 ? low : low >> shift | high << (32 - shift);
      low = high;
    }
  }

 private:
  std::uint32_t seed_, even_, odd_;
  std::uint32_t high_ = 0;
  std::uint32_t key_;
};

}  // namespace nccl_ext

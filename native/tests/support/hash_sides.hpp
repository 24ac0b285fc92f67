// SPDX-License-Identifier: Apache-2.0
// Random sides of moves and their sums byte by byte, for tests of hashes on hosts and on GPUs.
#pragma once

#include <cstring>
#include <random>

#include "m2n/hash_side.hpp"
#include "m2n/shared/cast.hpp"
#include "m2n/shared/hash_slot.hpp"

namespace nccl_ext::test {

using Bytes = std::vector<std::uint8_t>;

inline std::uint64_t at(const Bytes& memory) {
  return reinterpret_cast<std::uint64_t>(memory.data());
}

inline std::uint64_t runsOf(const HashSide& side) {
  return side.counts[0] * side.counts[1] * side.counts[2];
}

// Where run `run` of a side begins.
inline std::uint64_t placeOf(const HashSide& side, std::uint64_t run) {
  const std::uint64_t index[3] = {run / (side.counts[1] * side.counts[2]), run / side.counts[2] % side.counts[1],
                                  run % side.counts[2]};
  std::uint64_t address = side.address;
  for (std::size_t loop = 0; loop < 3; loop++) address += index[loop] * static_cast<std::uint64_t>(side.strides[loop]);
  return address;
}

// The bytes of a run at the destination.
inline Bytes runBytes(const HashSide& side, std::uint64_t address) {
  Bytes bytes;
  for (std::uint64_t i = 0; i < side.inner; i++) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const void*>(address + i * side.unit), side.unit);
    if (side.transform != 0)
      bits =
          castBits(static_cast<DType>((side.transform - 1) / 32), static_cast<DType>((side.transform - 1) % 32), bits);
    for (std::uint64_t byte = 0; byte < side.wordUnit; byte++)
      bytes.push_back(static_cast<std::uint8_t>(bits >> (8 * byte)));
  }
  return bytes;
}

// Straight from group-hash.ts, but for the mixing.
inline std::uint64_t oracle(const HashSide& side) {
  std::uint64_t sum = 0, number = side.number;
  for (std::uint64_t run = 0; run < runsOf(side); run++) {
    const Bytes bytes = runBytes(side, placeOf(side, run));
    for (std::size_t first = 0; first < bytes.size(); first += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + first, std::min<std::size_t>(8, bytes.size() - first));
      word += ++number * 0x9e37'79b9'7f4a'7c15;
      for (const std::uint64_t factor : {0x9e37'79b8, 0x85eb'ca6a, 0xc2b2'ae34}) {
        word ^= word >> 32;
        word += word % (std::uint64_t{1} << 32) * factor;
      }
      sum += word ^ word >> 32;
    }
  }
  return sum;
}

struct Random {
  std::mt19937_64 engine;
  std::uint64_t pick(std::uint64_t below) { return engine() % below; }
};

// A side within `memory`, which it fills with random bytes and whose ends it may touch.
inline HashSide randomSide(Random& random, Bytes& memory) {
  HashSide side;
  if (random.pick(3) == 0) {
    constexpr DType kFloats[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBf16, DType::kF8e4m3, DType::kF8e5m2};
    const std::size_t from = random.pick(6), to = (from + 1 + random.pick(5)) % 6;
    side.transform = castTransform(kFloats[from], kFloats[to]);
    side.unit = elementBytes(kFloats[from]);
    side.wordUnit = elementBytes(kFloats[to]);
  }
  side.inner = random.pick(4) == 0 ? 1 + random.pick(20'000) : 1 + random.pick(70);
  if (random.pick(2) == 0) side.inner = (side.inner + 15) / 16 * 16;
  const std::uint64_t gap = std::uint64_t{1} << random.pick(6);
  std::uint64_t reach = side.inner * side.unit;
  for (std::size_t loop = kMoveLoops; loop-- > 0;) {
    side.counts[loop] = 1 + random.pick(random.pick(3) == 0 ? 20 : 3);
    const std::uint64_t stride = reach + random.pick(3) * gap;
    side.strides[loop] = static_cast<std::int64_t>(stride);
    reach += stride * (side.counts[loop] - 1);
  }
  const std::uint64_t skew = random.pick(2) == 0 ? 0 : random.pick(16);
  memory.resize(skew + reach);
  for (std::uint8_t& byte : memory) byte = static_cast<std::uint8_t>(random.engine());
  side.address = at(memory) + skew;
  if (side.counts[2] > 1 && random.pick(8) == 0) {
    side.address += static_cast<std::uint64_t>(side.strides[2]) * (side.counts[2] - 1);
    side.strides[2] = -side.strides[2];
  }
  side.number = random.pick(3) == 0 ? random.engine() >> 20 : 0;
  return side;
}

}  // namespace nccl_ext::test

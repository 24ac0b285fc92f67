// SPDX-License-Identifier: Apache-2.0
// Meetings of threads: warp collectives and CTA barriers.
#pragma once

#include <cstring>
#include <type_traits>

#include "tests/simt/thread.hpp"

namespace nccl_ext::simt {

// Waits until all lanes of `mask` have come here; what they brought, by lane.
const std::array<std::uint64_t, 32>& meet(const char* what, std::uint32_t mask, Site site, std::uint64_t brings);

// Waits until all threads of the CTA have come here; [0] is the least that they brought, [1] the greatest.
const std::array<std::uint64_t, 32>& meetCta(const char* what, Site site, std::uint64_t brings);

// What lane `from` brought; it must be one of the mask.
std::uint64_t shuffle(const char* what, std::uint32_t mask, std::uint32_t from, Site site, std::uint64_t brings);

std::uint32_t ownLane();

// True for one lane of a warp whose lanes all come.
bool elect(Site site);

template <class Value>
std::uint64_t bitsOf(Value value) {
  static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class Value>
Value valueOf(std::uint64_t bits) {
  Value value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace nccl_ext::simt

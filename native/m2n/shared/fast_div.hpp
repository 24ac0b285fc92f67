// SPDX-License-Identifier: Apache-2.0
// Quotients by a divisor that is known when a program is made: a kernel that divided per tile would wait for the
// division, not for memory.
#pragma once

#include <cstdint>

#include "runtime/shared/qualifiers.hpp"

namespace nccl_ext {

// Exact for dividends below 2^31 (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994).
struct FastDiv {
  std::uint32_t divisor = 1;
  std::uint32_t multiplier = 1;
  std::uint32_t shift = 0;

  constexpr FastDiv() = default;

  // 1 to 2^31.
  constexpr explicit FastDiv(std::uint32_t by) : divisor(by) {
    while ((std::uint64_t{1} << shift) < by) shift++;
    multiplier = static_cast<std::uint32_t>((((std::uint64_t{1} << shift) - by) << 32) / by + 1);
  }

  NCCL_EXT_HD constexpr std::uint32_t quotient(std::uint32_t dividend) const {
    const auto high = static_cast<std::uint32_t>((std::uint64_t{dividend} * multiplier) >> 32);
    return (high + dividend) >> shift;
  }
};

static_assert(FastDiv(1).quotient(0x7fff'ffff) == 0x7fff'ffff);
static_assert(FastDiv(7).quotient(0x7fff'ffff) == 0x7fff'ffff / 7);
static_assert(FastDiv(0x7fff'ffff).quotient(0x7fff'fffe) == 0 && FastDiv(0x7fff'ffff).quotient(0x7fff'ffff) == 1);
static_assert(FastDiv(0x8000'0000).quotient(0x7fff'ffff) == 0);

}  // namespace nccl_ext

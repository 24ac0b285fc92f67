// SPDX-License-Identifier: Apache-2.0
// The only inline assembly: functions named after the PTX words they stand for.
#pragma once

#include <cstdint>

namespace nccl_ext::ptx {

// Nanoseconds on a clock that all SMs share; its steps may be as large as a microsecond.
__device__ inline std::uint64_t globaltimer() {
  std::uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value)::"memory");
  return value;
}

}  // namespace nccl_ext::ptx

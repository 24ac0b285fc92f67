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

// A word of 1, 2, 4, 8 or 16 bytes of shared memory, at a multiple of its size.
template <class Word>
__device__ inline Word loadShared(std::uint32_t address) {
  Word word;
  if constexpr (sizeof(Word) == 16) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                 : "r"(address));
  } else if constexpr (sizeof(Word) == 8) {
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(word.x), "=r"(word.y) : "r"(address));
  } else if constexpr (sizeof(Word) == 4) {
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address));
  } else {
    std::uint32_t wide;
    if constexpr (sizeof(Word) == 2)
      asm volatile("ld.shared.u16 %0, [%1];" : "=r"(wide) : "r"(address));
    else
      asm volatile("ld.shared.u8 %0, [%1];" : "=r"(wide) : "r"(address));
    word = static_cast<Word>(wide);
  }
  return word;
}

}  // namespace nccl_ext::ptx

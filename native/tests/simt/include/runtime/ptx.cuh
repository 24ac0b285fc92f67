// SPDX-License-Identifier: Apache-2.0
// In place of runtime/ptx.cuh, for the machine of tests/simt.
#pragma once

#include <cstring>

#include "tests/simt/bulk_engine.hpp"
#include "tests/simt/machine.hpp"

namespace nccl_ext::ptx {

inline std::uint64_t globaltimer() {
  return simt::machine().now();
}

template <class Word>
Word loadShared(std::uint32_t address) {
  if (address % sizeof(Word) != 0) simt::machine().fail("a load from shared memory at no multiple of its size");
  Word word;
  std::memcpy(&word, simt::sharedPlace(address, sizeof word), sizeof word);
  return word;
}

}  // namespace nccl_ext::ptx

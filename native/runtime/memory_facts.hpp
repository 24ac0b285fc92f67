// SPDX-License-Identifier: Apache-2.0
// What memory at an address is, asked of the driver: other libraries give an address and nothing else.
#pragma once

#include <cstdint>

#include "runtime/driver_api.hpp"

namespace nccl_ext {

struct MemoryFacts {
  int device = 0;
  bool managed = false;
  bool virtualMemory = false;  // of cuMemCreate
  bool ipc = false;            // CUDA IPC can share it
  std::uint64_t base = 0;      // of the allocation that holds the first byte; virtual memory: of the mapping
  std::uint64_t bytes = 0;     // of it
  std::uint64_t reach = 0;     // bytes from the address on, over mappings that touch; counting ends at the asked number
};

// Of the first of `bytes` bytes; how many are there is for the caller to compare. ERR_INVALID_ARGUMENT for memory that is
// no GPU's.
Outcome<MemoryFacts> memoryFacts(std::uint64_t address, std::uint64_t bytes, const char* op);

// For messages: 0x7f1200000000.
std::string addressText(std::uint64_t address);

}  // namespace nccl_ext

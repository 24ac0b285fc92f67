// SPDX-License-Identifier: Apache-2.0
// Memory as its rank describes it to ranks that want to write to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/memory_share.hpp"

namespace nccl_ext {

// Where a rank runs: two ranks of one process have equal `process`, two of one machine equal `host`.
struct Whereabouts {
  std::string host;
  std::string process;
};

// Of this process.
const Whereabouts& whereabouts();

struct Exposure {
  int device = 0;
  std::uint64_t address = 0;  // in its own process
  std::int64_t bytes = 0;
  std::optional<MemoryShare> share;  // for other processes; none when there is no such rank, or it cannot be shared
  std::string why;                   // it cannot be shared
  std::int64_t serial = 0;           // with a share: names the memory in its process for good, unlike its address
};

// Of memory that no other process reaches.
Exposure exposureOf(const DeviceMemory& memory);

// Of memory that others may open as long as `exported` lives, which is made unless it is there.
Exposure exposureOf(const DeviceMemory& memory, std::optional<Exported>& exported);

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
// Addresses by rank in device memory, where kernels read them.
#pragma once

#include <vector>

#include "runtime/device_memory.hpp"

namespace nccl_ext {

// Room for `entries` addresses on `device`. ERR_OUT_OF_MEMORY.
Outcome<DeviceMemory> allocatePeerTable(const NcclApi& api, int device, std::size_t entries);

// Writes `addresses` to the table, which has room for them.
Status fillPeerTable(const DeviceMemory& table, const std::vector<void*>& addresses, const char* op);

}  // namespace nccl_ext

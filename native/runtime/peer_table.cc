// SPDX-License-Identifier: Apache-2.0
#include "runtime/peer_table.hpp"

#include "runtime/cuda_error.hpp"

namespace nccl_ext {

static_assert(sizeof(void*) == sizeof(std::uint64_t), "kernels read addresses of 64 bits");

Outcome<DeviceMemory> allocatePeerTable(const NcclApi& api, int device, std::size_t entries) {
  return DeviceMemory::allocate(api, device, entries * sizeof(void*), MemoryKind::kPlain);
}

Status fillPeerTable(const DeviceMemory& table, const std::vector<void*>& addresses, const char* op) {
  const cudaError_t result = table.write(addresses.data(), addresses.size() * sizeof(void*));
  return result == cudaSuccess ? ok() : Status(cudaFailure(result, op, "the peer table"));
}

}  // namespace nccl_ext

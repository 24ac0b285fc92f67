// SPDX-License-Identifier: Apache-2.0
// One allocation of device memory, freed with its owner.
#pragma once

#include <cstddef>

#include "nccl/api.hpp"
#include "runtime/error.hpp"

namespace nccl_ext {

// `symmetric` memory (ncclMemAlloc) can become a window; `plain` is cudaMalloc's.
enum class MemoryKind { kPlain, kSymmetric };

class DeviceMemory {
 public:
  DeviceMemory() = default;
  // On `device`, at least 256-byte aligned; 0 bytes are a valid allocation. ERR_OUT_OF_MEMORY with the sizes.
  static Outcome<DeviceMemory> allocate(const NcclApi& api, int device, std::size_t bytes, MemoryKind kind);
  // May wait for kernels that run on the device: not on JavaScript's thread while a peer may spin.
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;

  void* address() const { return address_; }
  std::size_t bytes() const { return bytes_; }
  MemoryKind kind() const { return kind_; }

 private:
  const NcclApi* api_ = nullptr;
  int device_ = 0;
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
  MemoryKind kind_ = MemoryKind::kPlain;
};

}  // namespace nccl_ext

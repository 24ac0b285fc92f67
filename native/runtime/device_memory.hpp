// SPDX-License-Identifier: Apache-2.0
// Device memory: an allocation of ours, freed with its owner, or a part of somebody else's.
#pragma once

#include <cstddef>
#include <memory>

#include "nccl/api.hpp"
#include "runtime/error.hpp"

namespace nccl_ext {

// `symmetric` memory (ncclMemAlloc) can become a window; `plain` is cudaMalloc's.
enum class MemoryKind { kPlain, kSymmetric };

// Who allocated memory: this runtime, other code of this process, another process.
enum class MemoryOrigin { kOwn, kWrapped, kImported };

struct MemoryRoom {
  std::size_t free = 0;
  std::size_t total = 0;
};

// Of `device`, all processes together. Waits for no kernel.
Outcome<MemoryRoom> memoryRoom(int device);

class DeviceMemory {
 public:
  DeviceMemory() = default;
  // On `device`, at least 256-byte aligned; 0 bytes are a valid allocation. ERR_OUT_OF_MEMORY with the sizes.
  static Outcome<DeviceMemory> allocate(const NcclApi& api, int device, std::size_t bytes, MemoryKind kind);
  // Memory that somebody else frees. `hold` keeps it reachable and goes with this object, as slowly as a free.
  static DeviceMemory foreign(MemoryOrigin origin, int device, void* address, std::size_t bytes,
                              std::shared_ptr<const void> hold);
  // Its first bytes, from pageable memory; on the device when it returns. On the current device, which is its own.
  cudaError_t write(const void* from, std::size_t bytes) const;
  // May wait for kernels that run on the device: not on JavaScript's thread while a peer may spin.
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;

  void* address() const { return address_; }
  std::size_t bytes() const { return bytes_; }
  int device() const { return device_; }
  MemoryKind kind() const { return kind_; }
  MemoryOrigin origin() const { return origin_; }
  // What it takes of the GPU.
  std::size_t ownBytes() const { return origin_ == MemoryOrigin::kOwn ? bytes_ : 0; }

 private:
  const NcclApi* api_ = nullptr;
  int device_ = 0;
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
  MemoryKind kind_ = MemoryKind::kPlain;
  MemoryOrigin origin_ = MemoryOrigin::kOwn;
  std::shared_ptr<const void> hold_;
};

}  // namespace nccl_ext

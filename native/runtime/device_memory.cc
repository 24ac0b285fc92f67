// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_memory.hpp"

#include <algorithm>
#include <utility>

#include "runtime/cuda_error.hpp"

namespace nccl_ext {
namespace {

// CUDA gives null for 0 bytes, and a window needs an address on every rank.
constexpr std::size_t kLeastBytes = 256;

Failure outOfMemory(int device, std::size_t bytes) {
  (void)cudaGetLastError();
  const Outcome<MemoryRoom> asked = memoryRoom(device);
  const MemoryRoom room = asked ? asked.value() : MemoryRoom();
  return fail(ErrorCode::kOutOfMemory, "allocate",
              "GPU " + std::to_string(device) + " cannot give " + std::to_string(bytes) +
                  " bytes: " + std::to_string(room.free) + " of " + std::to_string(room.total) + " are free")
      .expecting(static_cast<std::int64_t>(room.free), static_cast<std::int64_t>(bytes));
}

}  // namespace

Outcome<MemoryRoom> memoryRoom(int device) {
  const DeviceGuard guard(device);
  MemoryRoom room;
  const cudaError_t result = cudaMemGetInfo(&room.free, &room.total);
  if (result != cudaSuccess) return cudaFailure(result, "memory", "what is free on GPU " + std::to_string(device));
  return room;
}

Outcome<DeviceMemory> DeviceMemory::allocate(const NcclApi& api, int device, std::size_t bytes, MemoryKind kind) {
  const DeviceGuard guard(device);
  const std::size_t taken = std::max(bytes, kLeastBytes);
  DeviceMemory memory;
  if (kind == MemoryKind::kPlain) {
    const cudaError_t result = cudaMalloc(&memory.address_, taken);
    if (result == cudaErrorMemoryAllocation) return outOfMemory(device, bytes);
    if (result != cudaSuccess) return cudaFailure(result, "allocate", std::to_string(bytes) + " bytes");
  } else {
    // NCCL has one result for all that CUDA refuses; here that is memory.
    const ncclResult_t result = api.ncclMemAlloc(&memory.address_, taken);
    if (result == ncclUnhandledCudaError) return outOfMemory(device, bytes);
    if (result != ncclSuccess)
      return fail(ErrorCode::kInternal, "allocate", std::string("ncclMemAlloc: ") + api.ncclGetErrorString(result));
  }
  memory.api_ = &api;
  memory.device_ = device;
  memory.bytes_ = bytes;
  memory.kind_ = kind;
  return memory;
}

DeviceMemory DeviceMemory::foreign(MemoryOrigin origin, int device, void* address, std::size_t bytes,
                                   std::shared_ptr<const void> hold) {
  DeviceMemory memory;
  memory.device_ = device;
  memory.address_ = address;
  memory.bytes_ = bytes;
  memory.origin_ = origin;
  memory.hold_ = std::move(hold);
  return memory;
}

cudaError_t DeviceMemory::write(const void* from, std::size_t bytes) const {
  if (bytes == 0) return cudaSuccess;
  const cudaError_t result = cudaMemcpy(address_, from, bytes, cudaMemcpyHostToDevice);
  // cudaMemcpy returns when it has read pageable memory; the last of it may still be on its way, and our streams do not wait for that.
  return result == cudaSuccess ? cudaStreamSynchronize(cudaStreamLegacy) : result;
}

DeviceMemory::~DeviceMemory() {
  if (address_ == nullptr || origin_ != MemoryOrigin::kOwn) return;
  const DeviceGuard guard(device_);
  if (kind_ == MemoryKind::kPlain)
    (void)cudaFree(address_);
  else
    (void)api_->ncclMemFree(address_);
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : api_(other.api_),
      device_(other.device_),
      address_(std::exchange(other.address_, nullptr)),
      bytes_(other.bytes_),
      kind_(other.kind_),
      origin_(other.origin_),
      hold_(std::move(other.hold_)) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  std::swap(kind_, other.kind_);
  std::swap(origin_, other.origin_);
  std::swap(hold_, other.hold_);
  return *this;
}

}  // namespace nccl_ext

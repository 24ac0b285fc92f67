// SPDX-License-Identifier: Apache-2.0
// The fake CUDA runtime's memory: a device's on the heap, pinned memory in pages of its own.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>

#include "tests/fake/fake_cudart_parts.hpp"
#include "tests/fake/fake_driver.hpp"

using nccl_ext::fake::answer;
using nccl_ext::fake::live;

namespace {

constexpr std::size_t kDeviceBytes = std::size_t{1} << 40;
std::atomic<int> pinnedSoFar{0};
std::mutex pinnedMutex;
std::map<const char*, std::size_t> pinned;  // by first byte

// Of a copy from pageable memory, which has been read.
struct Copy {
  void* to;
  std::vector<char> bytes;
};
std::mutex onTheWayMutex;
std::vector<Copy> onTheWay;

void* allocate(std::size_t bytes) {
  live++;
  return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
}

void release(void* address) {
  if (address != nullptr) live--;
  std::free(address);
}

}  // namespace

int nccl_ext::fake::pinnedAllocations() {
  return pinnedSoFar;
}

void nccl_ext::fake::finishCopies() {
  const std::lock_guard<std::mutex> lock(onTheWayMutex);
  for (const Copy& copy : onTheWay) std::memcpy(copy.to, copy.bytes.data(), copy.bytes.size());
  onTheWay.clear();
}

extern "C" {

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = kDeviceBytes;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  if (bytes > kDeviceBytes) return answer(cudaErrorMemoryAllocation);
  *address = allocate(bytes);
  const nccl_ext::fake::Driver& driver = nccl_ext::fake::driver();
  driver.adopt(nccl_ext::fake::Memory::kMalloc, driver.current(), *address, bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* address) {
  if (address != nullptr) nccl_ext::fake::driver().forget(address);
  release(address);
  return cudaSuccess;
}
// Pages of its own, as the driver's: freed ones must not stay with the heap of some thread.
cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return answer(cudaErrorMemoryAllocation);
  *address = pages;
  live++;
  pinnedSoFar++;
  const std::lock_guard<std::mutex> lock(pinnedMutex);
  pinned[static_cast<const char*>(*address)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* address) {
  const std::lock_guard<std::mutex> lock(pinnedMutex);
  const auto found = pinned.find(static_cast<const char*>(address));
  if (found == pinned.end()) return answer(cudaErrorInvalidValue);
  munmap(address, found->second);
  live--;
  pinned.erase(found);
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  const std::lock_guard<std::mutex> lock(pinnedMutex);
  const auto* byte = static_cast<const char*>(address);
  const auto after = pinned.upper_bound(byte);
  const bool inside = after != pinned.begin() && byte < std::prev(after)->first + std::prev(after)->second;
  attributes->type = inside ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
// Only from pageable memory to a device, where it is when the legacy stream was waited for.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  const auto* first = static_cast<const char*>(from);
  const std::lock_guard<std::mutex> lock(onTheWayMutex);
  onTheWay.push_back({to, {first, first + bytes}});
  return cudaSuccess;
}
cudaError_t cudaMemset(void* address, int value, std::size_t bytes) {
  std::memset(address, value, bytes);
  return cudaSuccess;
}

}  // extern "C"

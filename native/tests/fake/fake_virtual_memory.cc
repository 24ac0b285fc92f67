// SPDX-License-Identifier: Apache-2.0
// Virtual memory of the fake libcuda.so.1: allocations are files of memory, so that a descriptor really shares them, also
// between processes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/fake/fake_memory.hpp"

namespace nccl_ext::fake {

Physical* makePhysical(int device, std::size_t bytes) {
  auto* physical = new Physical();
  physical->descriptor = memfd_create(("fake-gpu-" + std::to_string(device)).c_str(), MFD_CLOEXEC);
  if (ftruncate(physical->descriptor, static_cast<off_t>(bytes)) != 0) std::abort();
  physical->bytes = bytes;
  physical->device = device;
  physicals++;
  return physical;
}

void drop(Physical* physical) {
  if (--physical->holds > 0) return;
  close(physical->descriptor);
  delete physical;
  physicals--;
}

void map(std::uintptr_t address, std::size_t bytes, Physical* physical, int protection) {
  physical->holds++;
  void* place = reinterpret_cast<void*>(address);
  if (mmap(place, bytes, protection, MAP_SHARED | MAP_FIXED, physical->descriptor, 0) == MAP_FAILED) std::abort();
  const Memory memory = !physical->own        ? Memory::kOtherProcess
                        : physical->shareable ? Memory::kVirtual
                                              : Memory::kUnshareable;
  ranges[address] = {memory, physical->device, bytes, physical};
}

std::uintptr_t reserve(std::size_t bytes) {
  void* place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return 0;
  reservations[addressOf(place)] = bytes;
  return addressOf(place);
}

}  // namespace nccl_ext::fake

using namespace nccl_ext::fake;

namespace {

Physical* physicalOf(CUmemGenericAllocationHandle handle) {
  return reinterpret_cast<Physical*>(static_cast<std::uintptr_t>(handle));
}

}  // namespace

extern "C" {

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = rangeAt(addressOf(address));
  if (found == ranges.end() || found->second.physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  found->second.physical->holds++;
  *handle = addressOf(found->second.physical);
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const std::lock_guard<std::mutex> lock(mutex);
  drop(physicalOf(handle));
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  const std::lock_guard<std::mutex> lock(mutex);
  std::memset(properties, 0, sizeof *properties);
  properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties->location = {};
  properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties->location.id = physicalOf(handle)->device;
  if (physicalOf(handle)->shareable) properties->requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType,
                                      unsigned long long) {
  const std::lock_guard<std::mutex> lock(mutex);
  const Physical& physical = *physicalOf(handle);
  if (!physical.shareable || !physical.own) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<int*>(shareable) = dup(physical.descriptor);
  return CUDA_SUCCESS;
}

// The name of the memory file says which GPU it is on.
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType) {
  const std::lock_guard<std::mutex> lock(mutex);
  const int descriptor = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
  char name[64] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  int device = -1;
  if (readlink(link.c_str(), name, sizeof name - 1) < 0 || std::sscanf(name, "/memfd:fake-gpu-%d", &device) != 1)
    return CUDA_ERROR_INVALID_VALUE;
  struct stat facts;
  fstat(descriptor, &facts);
  auto* physical = new Physical{dup(descriptor), static_cast<std::size_t>(facts.st_size), device, true, false, 1};
  physicals++;
  *handle = addressOf(physical);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t, CUdeviceptr, unsigned long long) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (bytes == 0 || bytes % kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  *address = reserve(bytes);
  return *address == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = reservations.find(address);
  if (found == reservations.end() || found->second != bytes || rangeAt(address) != ranges.end())
    return CUDA_ERROR_INVALID_VALUE;
  munmap(reinterpret_cast<void*>(address), bytes);
  reservations.erase(found);
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (offset != 0 || bytes > physicalOf(handle)->bytes) return CUDA_ERROR_INVALID_VALUE;
  map(address, bytes, physicalOf(handle), PROT_NONE);
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = ranges.find(address);
  if (found == ranges.end() || found->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
       0);
  drop(found->second.physical);
  ranges.erase(found);
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* access, std::size_t) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = ranges.find(address);
  if (found == ranges.end() || found->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  if (!reaches(access->location.id, found->second.device)) return CUDA_ERROR_INVALID_DEVICE;
  mprotect(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE);
  return CUDA_SUCCESS;
}

}  // extern "C"

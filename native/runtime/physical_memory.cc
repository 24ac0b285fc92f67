// SPDX-License-Identifier: Apache-2.0
#include "runtime/physical_memory.hpp"

#include <fcntl.h>

#include <utility>

namespace nccl_ext {
namespace {

constexpr auto kPosix = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

}  // namespace

PhysicalMemory PhysicalMemory::at(std::uint64_t address) {
  CUmemGenericAllocationHandle handle = 0;
  const CUresult result = driver().cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(address));
  return PhysicalMemory(result == CUDA_SUCCESS ? handle : 0);
}

Outcome<PhysicalMemory> PhysicalMemory::import(int descriptor, const char* op) {
  CUmemGenericAllocationHandle handle = 0;
  void* shareable = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor));
  const CUresult result = driver().cuMemImportFromShareableHandle(&handle, shareable, kPosix);
  if (result != CUDA_SUCCESS)
    return driverFailure(result, op, "descriptor " + std::to_string(descriptor) + " is not one of device memory",
                         ErrorCode::kInvalidArgument);
  return PhysicalMemory(handle);
}

PhysicalMemory::~PhysicalMemory() {
  if (handle_ != 0) (void)driver().cuMemRelease(handle_);
}

PhysicalMemory::PhysicalMemory(PhysicalMemory&& other) noexcept : handle_(std::exchange(other.handle_, 0)) {}

Outcome<CUmemAllocationProp> PhysicalMemory::properties(const char* op) const {
  CUmemAllocationProp properties = {};
  const CUresult result = driver().cuMemGetAllocationPropertiesFromHandle(&properties, handle_);
  if (result != CUDA_SUCCESS) return driverFailure(result, op, "asking what the allocation is");
  return properties;
}

Outcome<Descriptor> PhysicalMemory::describe(const char* op) const {
  const Outcome<CUmemAllocationProp> known = properties(op);
  if (!known) return known.error();
  if ((known.value().requestedHandleTypes & kPosix) == 0)
    return fail(ErrorCode::kUnsupported, op, "the memory was made by cuMemCreate without POSIX file descriptors")
        .helped("Make it with CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, as ncclMemAlloc does.");
  int descriptor = -1;
  const CUresult result = driver().cuMemExportToShareableHandle(&descriptor, handle_, kPosix, 0);
  if (result != CUDA_SUCCESS)
    return driverFailure(result, op, "the memory was imported from another process and cannot be shared again",
                         ErrorCode::kUnsupported)
        .helped("Share it from the process that allocated it.");
  (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return Descriptor(descriptor);
}

}  // namespace nccl_ext

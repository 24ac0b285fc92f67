// SPDX-License-Identifier: Apache-2.0
// Opens memory of another process. What the share says of sizes is checked against what is really there.
#include <unistd.h>

#include <algorithm>

#include "runtime/ipc_memory.hpp"
#include "runtime/memory_share.hpp"
#include "runtime/physical_memory.hpp"

namespace nccl_ext {
namespace {

// A mapping of physical memory into this process, undone with its owner.
struct Mapping {
  Mapping(int gpu, std::uint64_t size) : device(gpu), bytes(size) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    const DriverScope scope(device);
    if (mapped) (void)driver().cuMemUnmap(address, bytes);
    if (address != 0) (void)driver().cuMemAddressFree(address, bytes);
  }

  const int device;
  const std::uint64_t bytes;
  CUdeviceptr address = 0;
  bool mapped = false;
};

ErrorRecord tooLarge(const MemoryShare& share, std::uint64_t there, const char* op) {
  const std::int64_t end = share.byteOffset + share.bytes;
  return fail(ErrorCode::kOutOfBounds, op,
              "bytes " + std::to_string(share.byteOffset) + " to " + std::to_string(end) +
                  " lie outside an allocation of " + std::to_string(there) + " bytes")
      .expecting(static_cast<std::int64_t>(there), end);
}

Outcome<std::shared_ptr<Mapping>> map(const PhysicalMemory& memory, std::uint64_t bytes, int device, const char* op) {
  Outcome<CUmemAllocationProp> properties = memory.properties(op);
  if (!properties) return properties.error();
  std::size_t granularity = 0;
  CUresult result =
      driver().cuMemGetAllocationGranularity(&granularity, &properties.value(), CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (result != CUDA_SUCCESS) return driverFailure(result, op, "asking for the granularity of allocations");
  if (bytes == 0 || bytes % granularity != 0) {
    return fail(ErrorCode::kInvalidArgument, op,
                "allocationBytes is " + std::to_string(bytes) + "; allocations have multiples of " +
                    std::to_string(granularity) + " bytes")
        .expecting(static_cast<std::int64_t>(granularity), static_cast<std::int64_t>(bytes))
        .helped("Pass the size that cuMemCreate was called with.");
  }
  auto mapping = std::make_shared<Mapping>(device, bytes);
  result = driver().cuMemAddressReserve(&mapping->address, bytes, 0, 0, 0);
  if (result != CUDA_SUCCESS) return driverFailure(result, op, "reserving addresses");
  result = driver().cuMemMap(mapping->address, bytes, 0, memory.get(), 0);
  if (result != CUDA_SUCCESS)
    return driverFailure(result, op, "the allocation has no " + std::to_string(bytes) + " bytes",
                         ErrorCode::kInvalidArgument)
        .helped("allocationBytes must be the size that cuMemCreate was called with.");
  mapping->mapped = true;
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  result = driver().cuMemSetAccess(mapping->address, bytes, &access, 1);
  if (result != CUDA_SUCCESS) {
    const int there = properties.value().location.id;
    return driverFailure(result, op,
                         "GPU " + std::to_string(device) + " cannot reach memory of GPU " + std::to_string(there),
                         ErrorCode::kUnsupported)
        .expecting(static_cast<std::int64_t>(device), static_cast<std::int64_t>(there))
        .helped("Import it on a rank of the GPU that it lies on. `nvidia-smi topo -p2p r` shows who reaches whom.");
  }
  return mapping;
}

Outcome<DeviceMemory> openDescriptor(const MemoryShare& share, int device, const char* op) {
  if (share.descriptor < 0) return fail(ErrorCode::kInvalidArgument, op, "fd must be an integer of at least 0");
  if (share.allocationBytes < share.byteOffset + share.bytes)
    return tooLarge(share, static_cast<std::uint64_t>(std::max<std::int64_t>(share.allocationBytes, 0)), op);
  Descriptor copy;
  if (share.processId != 0 && share.processId != getpid()) {
    Outcome<Descriptor> copied = copyFromProcess(share.processId, share.descriptor, op);
    if (!copied) return copied.error();
    copy = std::move(copied.value());
  }
  const DriverScope scope(device);
  const Outcome<PhysicalMemory> memory = PhysicalMemory::import(copy.get() >= 0 ? copy.get() : share.descriptor, op);
  if (!memory) return memory.error();
  Outcome<std::shared_ptr<Mapping>> mapping =
      map(memory.value(), static_cast<std::uint64_t>(share.allocationBytes), device, op);
  if (!mapping) return mapping.error();
  const std::uint64_t address = mapping.value()->address + static_cast<std::uint64_t>(share.byteOffset);
  return DeviceMemory::foreign(MemoryOrigin::kImported, device, reinterpret_cast<void*>(address),
                               static_cast<std::size_t>(share.bytes), std::move(mapping.value()));
}

Outcome<DeviceMemory> openHandle(const MemoryShare& share, int device, const char* op) {
  Outcome<std::shared_ptr<const IpcMemory>> memory = openIpc(device, share.handle, op);
  if (!memory) return memory.error();
  const IpcMemory& there = *memory.value();
  if (static_cast<std::uint64_t>(share.byteOffset + share.bytes) > there.bytes) return tooLarge(share, there.bytes, op);
  const std::uint64_t address = there.address + static_cast<std::uint64_t>(share.byteOffset);
  return DeviceMemory::foreign(MemoryOrigin::kImported, device, reinterpret_cast<void*>(address),
                               static_cast<std::size_t>(share.bytes), memory.value());
}

}  // namespace

Outcome<DeviceMemory> openShare(const MemoryShare& share, int device, const char* op) {
  if (share.byteOffset < 0 || share.bytes < 0)
    return fail(ErrorCode::kInvalidArgument, op, "byteOffset and bytes must be integers from 0 to 2^53 - 1");
  switch (share.kind) {
    case ShareKind::kIpc:
      return openHandle(share, device, op);
    case ShareKind::kDescriptor:
      return openDescriptor(share, device, op);
    default:
      return fail(ErrorCode::kInvalidArgument, op, "kind must be 'ipc' or 'fd'");
  }
}

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_facts.hpp"

#include <cstdio>

#include "runtime/physical_memory.hpp"

namespace nccl_ext {
namespace {

struct Attributes {
  unsigned type = 0;  // CUmemorytype; 0: nothing that CUDA knows
  unsigned managed = 0;
  unsigned ipc = 0;
  int device = -1;
};

// An unknown address is no error for the driver: it leaves zeros.
Attributes attributesOf(std::uint64_t address) {
  Attributes out;
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* values[] = {&out.type, &out.managed, &out.ipc, &out.device};
  return driver().cuPointerGetAttributes(4, names, values, address) == CUDA_SUCCESS ? out : Attributes();
}

ErrorRecord notDeviceMemory(const Attributes& seen, std::uint64_t address, const char* op) {
  if (seen.type == CU_MEMORYTYPE_HOST)
    return fail(ErrorCode::kInvalidArgument, op, addressText(address) + " is host memory")
        .helped("Pass the address of device memory; stream.upload copies host memory there.");
  return fail(ErrorCode::kInvalidArgument, op, addressText(address) + " is no device memory of this process")
      .helped("Pass the address of memory that lives. Memory of another process is opened by importMemory.");
}

}  // namespace

std::string addressText(std::uint64_t address) {
  char text[24];
  (void)std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

Outcome<MemoryFacts> memoryFacts(std::uint64_t address, std::uint64_t bytes, const char* op) {
  const Attributes seen = attributesOf(address);
  MemoryFacts facts;
  CUdeviceptr base = 0;
  std::size_t size = 0;
  // Managed memory is a device's for CUDA; an address may be reserved and have no memory.
  if (seen.type != CU_MEMORYTYPE_DEVICE || driver().cuMemGetAddressRange_v2(&base, &size, address) != CUDA_SUCCESS)
    return notDeviceMemory(seen, address, op);
  facts.device = seen.device;
  facts.managed = seen.managed != 0;
  facts.ipc = seen.ipc != 0;
  facts.virtualMemory = static_cast<bool>(PhysicalMemory::at(address));
  facts.base = base;
  facts.bytes = size;
  facts.reach = base + size - address;
  // Allocations that touch by chance are not one, but mappings side by side were put there: an expandable segment.
  while (facts.virtualMemory && facts.reach < bytes) {
    const std::uint64_t next = address + facts.reach;
    if (attributesOf(next).device != facts.device) break;
    if (driver().cuMemGetAddressRange_v2(&base, &size, next) != CUDA_SUCCESS || base != next) break;
    facts.reach += size;
  }
  return facts;
}

}  // namespace nccl_ext

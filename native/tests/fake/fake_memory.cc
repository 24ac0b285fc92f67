// SPDX-License-Identifier: Apache-2.0
// The memory of the fake libcuda.so.1: of every kind, by address.
#include "tests/fake/fake_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "tests/fake/fake_contexts.hpp"

namespace nccl_ext::fake {

std::mutex mutex;
std::map<std::uintptr_t, Range> ranges;
std::map<std::uintptr_t, std::size_t> reservations;
int physicals = 0;
bool otherProcess = false;

std::map<std::uintptr_t, Range>::iterator rangeAt(std::uintptr_t address) {
  auto after = ranges.upper_bound(address);
  if (after == ranges.begin()) return ranges.end();
  const auto range = std::prev(after);
  return address < range->first + range->second.bytes ? range : ranges.end();
}

namespace {

std::size_t rounded(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + kGranularity - 1) / kGranularity * kGranularity;
}

void* allocate(Memory memory, int device, std::size_t bytes, int parts) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (memory < Memory::kVirtual) {
    void* address = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    ranges[addressOf(address)] = {memory, device, bytes, nullptr};
    return address;
  }
  const std::size_t each = rounded(bytes);
  const std::uintptr_t place = reserve(each * static_cast<std::size_t>(parts));
  for (int part = 0; part < parts; part++) {
    Physical* physical = makePhysical(device, each);
    physical->shareable = memory != Memory::kUnshareable;
    physical->own = memory != Memory::kOtherProcess;
    map(place + each * static_cast<std::size_t>(part), each, physical, PROT_READ | PROT_WRITE);
  }
  return reinterpret_cast<void*>(place);
}

void release(void* address) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (address == nullptr) return;
  const auto reservation = reservations.find(addressOf(address));
  if (reservation == reservations.end()) {
    ranges.erase(addressOf(address));
    return std::free(address);
  }
  const std::uintptr_t end = reservation->first + reservation->second;
  for (auto range = ranges.lower_bound(reservation->first); range != ranges.end() && range->first < end;
       range = ranges.erase(range))
    drop(range->second.physical);
  munmap(address, reservation->second);
  reservations.erase(reservation);
}

void adopt(Memory memory, int device, void* address, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  ranges[addressOf(address)] = {memory, device, bytes, nullptr};
}

void forget(void* address) {
  const std::lock_guard<std::mutex> lock(mutex);
  ranges.erase(addressOf(address));
}

void pretendOtherProcess(bool on) {
  const std::lock_guard<std::mutex> lock(mutex);
  otherProcess = on;
}

int descriptorOf(void* address) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = ranges.find(addressOf(address));
  return found == ranges.end() || found->second.physical == nullptr ? -1 : found->second.physical->descriptor;
}

int openedIpc() {
  const std::lock_guard<std::mutex> lock(mutex);
  int opens = 0;
  for (const auto& [address, range] : ranges) opens += range.opens;
  return opens;
}

int live() {
  const std::lock_guard<std::mutex> lock(mutex);
  return physicals + static_cast<int>(ranges.size() + reservations.size());
}

}  // namespace
}  // namespace nccl_ext::fake

using namespace nccl_ext::fake;

extern "C" {

const nccl_ext::fake::Driver* fakeDriver() {
  static const nccl_ext::fake::Driver table{allocate,     release,      adopt,      forget,  adoptStream,
                                            forgetStream, descriptorOf, setCurrent, current, pretendOtherProcess,
                                            openedIpc,    live};
  return &table;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data, CUdeviceptr pointer) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = rangeAt(pointer);
  const bool known = found != ranges.end();
  const Memory memory = known ? found->second.memory : Memory::kMalloc;
  for (unsigned i = 0; i < count; i++) {
    switch (attributes[i]) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: {
        const auto type = memory == Memory::kPinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        *static_cast<unsigned*>(data[i]) = known ? static_cast<unsigned>(type) : 0u;
        break;
      }
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *static_cast<unsigned*>(data[i]) = known && memory == Memory::kManaged;
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(data[i]) = known ? found->second.device : -2;
        break;
      case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *static_cast<unsigned*>(data[i]) = known && memory == Memory::kMalloc;
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr pointer) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = rangeAt(pointer);
  if (found == ranges.end()) return CUDA_ERROR_NOT_FOUND;
  *base = found->first;
  *bytes = found->second.bytes;
  return CUDA_SUCCESS;
}

}  // extern "C"

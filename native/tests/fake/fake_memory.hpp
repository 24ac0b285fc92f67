// SPDX-License-Identifier: Apache-2.0
// What the parts of the fake libcuda.so.1 know together: which memory lies where. Hold `mutex` for all of it.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <mutex>

#include "tests/fake/fake_driver.hpp"

namespace nccl_ext::fake {

constexpr std::size_t kGranularity = 2u << 20;

// What cuMemCreate makes; a handle is its address.
struct Physical {
  int descriptor = -1;
  std::size_t bytes = 0;
  int device = 0;
  bool shareable = true;  // made with POSIX descriptors
  bool own = true;        // by this process
  int holds = 0;          // handles and mappings
};

inline int lastRange = 0;

struct Range {
  Memory memory = Memory::kMalloc;
  int device = 0;
  std::size_t bytes = 0;
  Physical* physical = nullptr;  // of virtual memory
  int opens = 0;                 // of IPC memory
  int number = ++lastRange;      // so that memory at an address that was used before has another IPC handle
};

extern std::mutex mutex;
extern std::map<std::uintptr_t, Range> ranges;              // by first byte
extern std::map<std::uintptr_t, std::size_t> reservations;  // virtual addresses
extern int physicals;                                       // alive
extern bool otherProcess;
extern thread_local int currentDevice;

inline std::uintptr_t addressOf(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// As cuDeviceCanAccessPeer of fake_cuda.cc.
inline bool reaches(int device, int other) {
  return device == other || device + other == 1;
}

std::map<std::uintptr_t, Range>::iterator rangeAt(std::uintptr_t address);

// fake_virtual_memory.cc
Physical* makePhysical(int device, std::size_t bytes);
void drop(Physical* physical);
void map(std::uintptr_t address, std::size_t bytes, Physical* physical, int protection);
std::uintptr_t reserve(std::size_t bytes);

}  // namespace nccl_ext::fake

// SPDX-License-Identifier: Apache-2.0
// What the fakes of CUDA's runtime and of NCCL, and tests, ask of the fake driver besides its real functions: memory of
// every kind that exists, and counts of what is alive.
#pragma once

#include <dlfcn.h>

#include <cstddef>

namespace nccl_ext::fake {

// By who made it. Virtual memory lies in a file of memory, so that its descriptor really shares it between processes.
enum class Memory {
  kMalloc,        // cudaMalloc
  kPool,          // cudaMallocAsync
  kManaged,       // cudaMallocManaged
  kPinned,        // cudaHostAlloc
  kVirtual,       // cuMemCreate with POSIX descriptors, as ncclMemAlloc
  kUnshareable,   // cuMemCreate without a handle type
  kOtherProcess,  // cuMemImportFromShareableHandle
};

struct Driver {
  // `parts` allocations of `bytes` each, mapped one after the other; more than one of virtual memory alone.
  void* (*allocate)(Memory memory, int device, std::size_t bytes, int parts);
  void (*release)(void* address);
  // Tells the driver of memory that somebody else allocated.
  void (*adopt)(Memory memory, int device, void* address, std::size_t bytes);
  void (*forget)(void* address);
  void (*adoptStream)(void* stream, int device, bool ownContext);
  void (*forgetStream)(void* stream);
  // The file of the virtual memory that begins at `address`, or -1.
  int (*descriptorOf)(void* address);
  // As cudaSetDevice.
  void (*setCurrent)(int device);
  int (*current)();
  // Whether IPC handles of this process count as another one's, so that one process can test both sides.
  void (*pretendOtherProcess)(bool on);
  // Opened IPC memory, counted by opens.
  int (*openedIpc)();
  // Physical allocations, mappings and reservations that are alive.
  int (*live)();
};

// The table inside libcuda.so.1, which the process has loaded or will.
inline const Driver& driver() {
  static const Driver& table = []() -> const Driver& {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const auto get = reinterpret_cast<const Driver* (*)()>(dlsym(library, "fakeDriver"));
    return *get();
  }();
  return table;
}

}  // namespace nccl_ext::fake

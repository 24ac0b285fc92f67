// SPDX-License-Identifier: Apache-2.0
// How memory goes to another process: `MemoryShare` of contract/runtime.ts, how to make one and how to open one.
#pragma once

#include <cstdint>

#include "runtime/descriptor.hpp"
#include "runtime/device_memory.hpp"
#include "runtime/meeting.hpp"

namespace nccl_ext {

enum class ShareKind { kUnknown, kIpc, kDescriptor };

struct MemoryShare {
  ShareKind kind = ShareKind::kUnknown;
  Bytes handle;                      // kIpc: 64 bytes
  int descriptor = -1;               // kDescriptor
  std::int64_t processId = 0;        // kDescriptor: whose descriptor it is; 0: the importing process's
  std::int64_t allocationBytes = 0;  // kDescriptor
  std::int64_t byteOffset = 0;       // of the range in its allocation
  std::int64_t bytes = 0;
};

// Grows with every call, on any thread.
std::int64_t nextExportSerial();

// A share, and what must stay open for it.
struct Exported {
  MemoryShare share;
  Descriptor descriptor;
  std::shared_ptr<const void> hold;  // of a handle
  // Of this process: when memory was freed, other memory may get its address and even the number of its descriptor.
  std::int64_t serial = nextExportSerial();
};

// ERR_UNSUPPORTED: memory that cannot be shared, and why.
Outcome<Exported> exportShare(const DeviceMemory& memory, const char* op);

// Opens it for kernels of `device`. ERR_INVALID_ARGUMENT, ERR_OUT_OF_BOUNDS: the share does not fit what is behind it.
// ERR_UNSUPPORTED: the kernel or the GPUs do not allow it.
Outcome<DeviceMemory> openShare(const MemoryShare& share, int device, const char* op);

}  // namespace nccl_ext

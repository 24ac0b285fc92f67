// SPDX-License-Identifier: Apache-2.0
// CUDA IPC: handles of this process's memory, and memory of others that they open. Older drivers refuse to open a handle
// that is open, and closing one twice ends the other user's view, so opens are counted here.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/error.hpp"
#include "runtime/meeting.hpp"

namespace nccl_ext {

inline constexpr std::size_t kIpcHandleBytes = 64;

// As long as `hold` lives, openIpc knows the handle as one of this process.
struct IpcExport {
  Bytes handle;
  std::shared_ptr<const void> hold;
};

// The handle of the allocation that starts at `base`; a context is current. ERR_UNSUPPORTED.
Outcome<IpcExport> exportIpc(std::uint64_t base, const char* op);

// Another process's allocation, as one device of this process sees it.
struct IpcMemory {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // from `address` to the end of the allocation
};

// Opens `handle` for `device`, or counts one more user. The last user closes it: not on JavaScript's thread.
// ERR_INVALID_ARGUMENT: no such handle, or one of this very process. ERR_UNSUPPORTED: the GPUs do not reach each other.
Outcome<std::shared_ptr<const IpcMemory>> openIpc(int device, const Bytes& handle, const char* op);

}  // namespace nccl_ext

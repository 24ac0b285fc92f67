// SPDX-License-Identifier: Apache-2.0
// CUDA IPC of the fake libcuda.so.1, inside one process that can pretend to be two.
#include <unistd.h>

#include <cstring>

#include "tests/fake/fake_memory.hpp"

using namespace nccl_ext::fake;

namespace {

struct IpcContent {
  int process;
  int device;
  int number;
  int zero;  // no padding: equal handles have equal bytes
  std::uintptr_t address;
};
static_assert(sizeof(IpcContent) <= sizeof(CUipcMemHandle));

}  // namespace

extern "C" {

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = ranges.find(pointer);
  if (found == ranges.end() || found->second.memory != Memory::kMalloc) return CUDA_ERROR_INVALID_VALUE;
  const IpcContent content{getpid(), found->second.device, found->second.number, 0, found->first};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &content, sizeof content);
  return CUDA_SUCCESS;
}

// As the real one: memory of this process is refused, and a handle that is open is not opened again by this fake, so
// that a second open is seen.
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  const std::lock_guard<std::mutex> lock(mutex);
  IpcContent content;
  std::memcpy(&content, &handle, sizeof content);
  if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
  if (content.process == getpid() && !otherProcess) return CUDA_ERROR_INVALID_CONTEXT;
  const auto found = ranges.find(content.address);
  if (content.process != getpid() || found == ranges.end() || found->second.number != content.number)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!reaches(currentDevice, content.device)) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  if (found->second.opens > 0) return CUDA_ERROR_ALREADY_MAPPED;
  found->second.opens++;
  *address = content.address;
  return CUDA_SUCCESS;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = ranges.find(address);
  if (found == ranges.end() || found->second.opens == 0) return CUDA_ERROR_INVALID_VALUE;
  found->second.opens--;
  return CUDA_SUCCESS;
}

}  // extern "C"

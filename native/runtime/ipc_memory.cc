// SPDX-License-Identifier: Apache-2.0
#include "runtime/ipc_memory.hpp"

#include <cstring>
#include <map>
#include <mutex>

#include "runtime/driver_api.hpp"

namespace nccl_ext {
namespace {

static_assert(sizeof(CUipcMemHandle) == kIpcHandleBytes);

struct Opened {
  IpcMemory memory;
  int users = 0;
};
using Key = std::pair<int, Bytes>;

// Of the process: several environments may open the same memory.
std::mutex mutex;
std::map<Key, Opened> opened;
// Those of this process, with how often each is exported: several buffers may lie in one allocation.
std::map<Bytes, int> own;

void letGo(const Key& key) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = opened.find(key);
  if (--found->second.users > 0) return;
  const DriverScope scope(key.first);
  (void)driver().cuIpcCloseMemHandle(found->second.memory.address);
  opened.erase(found);
}

void forget(const Bytes& handle) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = own.find(handle);
  if (--found->second == 0) own.erase(found);
}

ErrorRecord ofThisProcess(const char* op) {
  return fail(ErrorCode::kInvalidArgument, op, "the handle is of memory of this process, which CUDA IPC does not open")
      .helped("Use the buffer itself, or wrapMemory with its address.");
}

ErrorRecord notOpened(CUresult result, int device, const char* op) {
  const std::string gpu = "GPU " + std::to_string(device);
  if (result == CUDA_ERROR_INVALID_CONTEXT) return ofThisProcess(op);
  if (result == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED || result == CUDA_ERROR_TOO_MANY_PEERS ||
      result == CUDA_ERROR_NOT_SUPPORTED)
    return driverFailure(result, op, gpu + " cannot reach the memory", ErrorCode::kUnsupported)
        .helped("Import it on a rank of the GPU that it lies on. `nvidia-smi topo -p2p r` shows who reaches whom.");
  return driverFailure(result, op, gpu + " cannot open the handle", ErrorCode::kInvalidArgument)
      .helped("The process that exported it must live and keep the buffer, and see its GPU (CUDA_VISIBLE_DEVICES).");
}

}  // namespace

Outcome<IpcExport> exportIpc(std::uint64_t base, const char* op) {
  CUipcMemHandle raw;
  const CUresult result = driver().cuIpcGetMemHandle(&raw, base);
  if (result != CUDA_SUCCESS)
    return driverFailure(result, op, "CUDA IPC cannot share the memory", ErrorCode::kUnsupported);
  Bytes handle(kIpcHandleBytes);
  std::memcpy(handle.data(), &raw, sizeof raw);
  const std::lock_guard<std::mutex> lock(mutex);
  own[handle]++;
  return IpcExport{handle, std::shared_ptr<const void>(&own, [handle](const void*) { forget(handle); })};
}

Outcome<std::shared_ptr<const IpcMemory>> openIpc(int device, const Bytes& handle, const char* op) {
  if (handle.size() != kIpcHandleBytes) {
    return fail(ErrorCode::kInvalidArgument, op, "a CUDA IPC handle has 64 bytes")
        .expecting(static_cast<std::int64_t>(kIpcHandleBytes), static_cast<std::int64_t>(handle.size()))
        .helped("PyTorch puts two bytes in front of the handle: pass handle.subarray(2).");
  }
  const Key key{device, handle};
  const std::lock_guard<std::mutex> lock(mutex);
  auto found = opened.find(key);
  if (found == opened.end()) {
    if (own.count(handle) > 0) return ofThisProcess(op);
    CUipcMemHandle raw;
    std::memcpy(&raw, handle.data(), sizeof raw);
    const DriverScope scope(device);
    CUdeviceptr address = 0, base = 0;
    std::size_t bytes = 0;
    const CUresult result = driver().cuIpcOpenMemHandle_v2(&address, raw, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (result != CUDA_SUCCESS) return notOpened(result, device, op);
    const CUresult asked = driver().cuMemGetAddressRange_v2(&base, &bytes, address);
    if (asked != CUDA_SUCCESS) {
      (void)driver().cuIpcCloseMemHandle(address);
      return driverFailure(asked, op, "asking how large the memory is");
    }
    found = opened.emplace(key, Opened{{address, base + bytes - address}, 0}).first;
  }
  found->second.users++;
  return std::shared_ptr<const IpcMemory>(new IpcMemory(found->second.memory), [key](const IpcMemory* memory) {
    delete memory;
    letGo(key);
  });
}

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
// Contexts of the fake libcuda.so.1: one per device, and one that a library made for itself there.
#include "tests/fake/fake_contexts.hpp"

#include "tests/fake/fake_memory.hpp"

namespace nccl_ext::fake {

thread_local int currentDevice = 0;

namespace {

struct StreamFacts {
  int device;
  bool ownContext;
};

std::map<const void*, StreamFacts> streams;
char contexts[64];       // the primary context of each device, by address
char otherContexts[64];  // the other one
// Contexts are never left pushed, so the one before is that of the device before.
thread_local int deviceBefore = 0;

}  // namespace

void adoptStream(void* stream, int device, bool ownContext) {
  const std::lock_guard<std::mutex> lock(mutex);
  streams[stream] = {device, ownContext};
}

void forgetStream(void* stream) {
  const std::lock_guard<std::mutex> lock(mutex);
  streams.erase(stream);
}

void setCurrent(int device) {
  currentDevice = device;
}

int current() {
  return currentDevice;
}

}  // namespace nccl_ext::fake

using namespace nccl_ext::fake;

extern "C" {

CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = error == CUDA_ERROR_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR_FAKE";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** words) {
  *words = error == CUDA_ERROR_INVALID_VALUE ? "invalid argument" : "fake error";
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(&contexts[currentDevice]);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  const auto* place = reinterpret_cast<const char*>(context);
  const bool primary = place >= contexts && place < contexts + sizeof contexts;
  deviceBefore = currentDevice;
  currentDevice = static_cast<int>(place - (primary ? contexts : otherContexts));
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext*) {
  currentDevice = deviceBefore;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  *device = currentDevice;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = streams.find(stream);
  if (found == streams.end()) return CUDA_ERROR_INVALID_HANDLE;
  char* all = found->second.ownContext ? otherContexts : contexts;
  *context = reinterpret_cast<CUcontext>(&all[found->second.device]);
  return CUDA_SUCCESS;
}

}  // extern "C"

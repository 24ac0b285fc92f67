// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda_error.hpp"

namespace nccl_ext {

Failure cudaFailure(cudaError_t result, const std::string& op, const std::string& what) {
  (void)cudaGetLastError();
  const ErrorCode code = result == cudaErrorMemoryAllocation ? ErrorCode::kOutOfMemory : ErrorCode::kInternal;
  return fail(code, op, what + ": " + cudaGetErrorString(result) + " (" + cudaGetErrorName(result) + ")");
}

DeviceGuard::DeviceGuard(int device) {
  int current = -1;
  if (cudaGetDevice(&current) != cudaSuccess || current == device) return;
  if (cudaSetDevice(device) == cudaSuccess) before_ = current;
}

DeviceGuard::~DeviceGuard() {
  if (before_ >= 0) (void)cudaSetDevice(before_);
}

}  // namespace nccl_ext

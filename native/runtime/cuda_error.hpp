// SPDX-License-Identifier: Apache-2.0
// From CUDA's results to records, and the current device as a scope.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/error.hpp"

namespace nccl_ext {

// The record of a CUDA call that failed. Clears the thread's last error, so that the next call does not report it
// again. Out of memory is ERR_OUT_OF_MEMORY, everything else ERR_INTERNAL.
Failure cudaFailure(cudaError_t result, const std::string& op, const std::string& what);

// Makes `device` current for this scope and restores the one before.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_ = -1;
};

}  // namespace nccl_ext

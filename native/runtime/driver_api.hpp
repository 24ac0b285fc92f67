// SPDX-License-Identifier: Apache-2.0
// The driver as a table of pointers, for what the CUDA runtime does not offer. The addon links no libcuda: it must load
// on a machine without a driver.
#pragma once

#include <cuda.h>

#include <string>

#include "runtime/error.hpp"

namespace nccl_ext {

struct DriverApi {
#define NCCL_EXT_DRIVER_SYMBOL(name) decltype(&::name) name = nullptr;
#define NCCL_EXT_DRIVER_OPTIONAL(name) NCCL_EXT_DRIVER_SYMBOL(name)
#include "runtime/driver_symbols.inc"
#undef NCCL_EXT_DRIVER_OPTIONAL
#undef NCCL_EXT_DRIVER_SYMBOL

  // Whether the driver tells which kernels a module has.
  bool canEnumerate() const {
    return cuModuleGetFunctionCount != nullptr && cuModuleEnumerateFunctions != nullptr && cuFuncGetName != nullptr &&
           cuFuncLoad != nullptr;
  }
};

// Fills the process's table from `library`, which probeDriver() has loaded. One call at a time. ERR_DRIVER_TOO_OLD names
// a function that is missing and not optional.
Status loadDriver(const std::string& library = "libcuda.so.1");

// The table; loadDriver() has succeeded before any rank exists.
const DriverApi& driver();

// The record of a driver call that failed: ERR_OUT_OF_MEMORY for memory, `code` for everything else.
Failure driverFailure(CUresult result, const std::string& op, const std::string& what,
                      ErrorCode code = ErrorCode::kInternal);

// A context of `device` for calls of the driver, which make none themselves as those of the CUDA runtime do. Restores the
// device that was current before.
class DriverScope {
 public:
  explicit DriverScope(int device);
  ~DriverScope();
  DriverScope(const DriverScope&) = delete;
  DriverScope& operator=(const DriverScope&) = delete;

 private:
  int device_;
  int before_;
};

// The driver's words for a result, as in "invalid argument (CUDA_ERROR_INVALID_VALUE)".
std::string driverText(CUresult result);

}  // namespace nccl_ext

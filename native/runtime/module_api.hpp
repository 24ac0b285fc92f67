// SPDX-License-Identifier: Apache-2.0
// The driver's functions for modules and launches, by pointer: the addon is not linked with libcuda, and some functions
// are newer than the oldest driver that we run on.
#pragma once

#include <cuda.h>

#include "runtime/error.hpp"

namespace nccl_ext {

struct ModuleApi {
  decltype(&::cuCtxGetCurrent) ctxGetCurrent = nullptr;
  decltype(&::cuModuleLoadDataEx) moduleLoadDataEx = nullptr;
  decltype(&::cuModuleUnload) moduleUnload = nullptr;
  decltype(&::cuModuleGetFunction) moduleGetFunction = nullptr;
  decltype(&::cuFuncGetAttribute) funcGetAttribute = nullptr;
  decltype(&::cuFuncSetAttribute) funcSetAttribute = nullptr;
  decltype(&::cuLaunchKernel) launchKernel = nullptr;
  // Of CUDA 12.4; null on older drivers.
  decltype(&::cuModuleGetFunctionCount) moduleGetFunctionCount = nullptr;
  decltype(&::cuModuleEnumerateFunctions) moduleEnumerateFunctions = nullptr;
  decltype(&::cuFuncGetName) funcGetName = nullptr;
  decltype(&::cuFuncLoad) funcLoad = nullptr;
  decltype(&::cuFuncGetParamInfo) funcGetParamInfo = nullptr;

  bool canEnumerate() const {
    return moduleGetFunctionCount != nullptr && moduleEnumerateFunctions != nullptr && funcGetName != nullptr &&
           funcLoad != nullptr;
  }
};

// Of the libcuda.so.1 that the process has; looked up once. ERR_DRIVER_TOO_OLD names a function that is missing.
Outcome<const ModuleApi*> moduleApi();

// The driver's words for a result, as in "invalid argument (CUDA_ERROR_INVALID_VALUE)".
std::string driverText(CUresult result);

// Makes `device` current for this scope, as the driver sees it: the CUDA runtime may count device 0 as current while
// the thread has no context yet.
class ContextGuard {
 public:
  ContextGuard(const ModuleApi& api, int device);
  ~ContextGuard();
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

 private:
  int before_ = -1;
};

}  // namespace nccl_ext

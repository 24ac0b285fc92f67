// SPDX-License-Identifier: Apache-2.0
#include "runtime/module_api.hpp"

#include <dlfcn.h>

#include "runtime/cuda_error.hpp"

namespace nccl_ext {
namespace {

template <class Function>
bool resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Outcome<ModuleApi> lookUp() {
  // The CUDA runtime has loaded it, so this is the same one.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(ErrorCode::kDriverMissing, "loadModule", "libcuda.so.1 cannot be opened");
  ModuleApi api;
  const char* missing = nullptr;
  const auto need = [&](const char* name, auto& function) {
    if (!resolve(library, name, function)) missing = name;
  };
  need("cuCtxGetCurrent", api.ctxGetCurrent);
  need("cuModuleLoadDataEx", api.moduleLoadDataEx);
  need("cuModuleUnload", api.moduleUnload);
  need("cuModuleGetFunction", api.moduleGetFunction);
  need("cuFuncGetAttribute", api.funcGetAttribute);
  need("cuFuncSetAttribute", api.funcSetAttribute);
  need("cuLaunchKernel", api.launchKernel);
  if (missing != nullptr) {
    return fail(ErrorCode::kDriverTooOld, "loadModule", std::string("the driver has no ") + missing)
        .helped("Update the driver.");
  }
  (void)resolve(library, "cuModuleGetFunctionCount", api.moduleGetFunctionCount);
  (void)resolve(library, "cuModuleEnumerateFunctions", api.moduleEnumerateFunctions);
  (void)resolve(library, "cuFuncGetName", api.funcGetName);
  (void)resolve(library, "cuFuncLoad", api.funcLoad);
  (void)resolve(library, "cuFuncGetParamInfo", api.funcGetParamInfo);
  return api;
}

}  // namespace

Outcome<const ModuleApi*> moduleApi() {
  static const Outcome<ModuleApi> found = lookUp();
  if (!found) return found.error();
  return &found.value();
}

// The runtime and the driver share their numbers.
std::string driverText(CUresult result) {
  const auto same = static_cast<cudaError_t>(result);
  return std::string(cudaGetErrorString(same)) + " (" + cudaGetErrorName(same) + ")";
}

ContextGuard::ContextGuard(const ModuleApi& api, int device) {
  CUcontext context = nullptr;
  int current = -1;
  const bool bound = api.ctxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr;
  if (cudaGetDevice(&current) != cudaSuccess || (bound && current == device)) return;
  if (cudaSetDevice(device) == cudaSuccess && current != device) before_ = current;
}

ContextGuard::~ContextGuard() {
  if (before_ >= 0) (void)cudaSetDevice(before_);
}

}  // namespace nccl_ext

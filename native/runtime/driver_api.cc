// SPDX-License-Identifier: Apache-2.0
#include "runtime/driver_api.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

namespace nccl_ext {
namespace {

DriverApi table;

}  // namespace

Status loadDriver(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  DriverApi found;
  const char* missing = handle == nullptr ? "everything" : nullptr;
#define NCCL_EXT_DRIVER_SYMBOL(name)                                                                                \
  if (missing == nullptr && (found.name = reinterpret_cast<decltype(found.name)>(dlsym(handle, #name))) == nullptr) \
    missing = #name;
#define NCCL_EXT_DRIVER_OPTIONAL(name) \
  if (missing == nullptr) found.name = reinterpret_cast<decltype(found.name)>(dlsym(handle, #name));
#include "runtime/driver_symbols.inc"
#undef NCCL_EXT_DRIVER_OPTIONAL
#undef NCCL_EXT_DRIVER_SYMBOL
  if (missing != nullptr)
    return fail(ErrorCode::kDriverTooOld, "driver", library + " lacks " + missing).helped("Update the driver.");
  table = found;
  return ok();
}

const DriverApi& driver() {
  return table;
}

DriverScope::DriverScope(int device) : device_(device), before_(device) {
  (void)cudaGetDevice(&before_);
  // Also when it is current already: it makes the device's context this thread's.
  (void)cudaSetDevice(device);
}

DriverScope::~DriverScope() {
  if (before_ != device_) (void)cudaSetDevice(before_);
}

std::string driverText(CUresult result) {
  const char* name = nullptr;
  const char* words = nullptr;
  if (table.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr)
    return "CUresult " + std::to_string(static_cast<int>(result));
  if (table.cuGetErrorString(result, &words) != CUDA_SUCCESS || words == nullptr) return name;
  return std::string(words) + " (" + name + ")";
}

Failure driverFailure(CUresult result, const std::string& op, const std::string& what, ErrorCode code) {
  return fail(result == CUDA_ERROR_OUT_OF_MEMORY ? ErrorCode::kOutOfMemory : code, op,
              what + ": the driver reports " + driverText(result));
}

}  // namespace nccl_ext

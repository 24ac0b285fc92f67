// SPDX-License-Identifier: Apache-2.0
#include "runtime/driver.hpp"

#include <dlfcn.h>

namespace nccl_ext {
namespace {

// CUresult values of cuda.h, which is not needed for anything else here.
constexpr int kCudaErrorStubLibrary = 34;
constexpr int kCudaErrorNoDevice = 100;
constexpr int kCudaErrorSystemDriverMismatch = 803;

using InitFunction = int (*)(unsigned);
using QueryFunction = int (*)(int*);

Failure missing(std::string detail, std::string help) {
  return fail(ErrorCode::kDriverMissing, "driver", std::move(detail)).helped(std::move(help));
}

Failure cannotStart(int result) {
  if (result == kCudaErrorNoDevice) {
    return missing("the NVIDIA driver finds no GPU",
                   "Check `nvidia-smi`, CUDA_VISIBLE_DEVICES, and that the container was given a GPU.");
  }
  if (result == kCudaErrorStubLibrary) {
    return missing("libcuda.so.1 is the toolkit's stub, not a driver",
                   "Remove the toolkit's stubs folder from LD_LIBRARY_PATH.");
  }
  if (result == kCudaErrorSystemDriverMismatch) {
    return missing("libcuda.so.1 and the kernel's NVIDIA module have different versions",
                   "Restart the machine after the driver's update, or give the container the host's libraries.");
  }
  return missing("the NVIDIA driver cannot start: cuInit gives " + std::to_string(result), "Check `nvidia-smi`.");
}

}  // namespace

int oldestDriverSeries(int cudaMajor) {
  return cudaMajor >= 13 ? 580 : 525;
}

Outcome<DriverFacts> probeDriver(int neededMajor, const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return missing(std::string("there is no NVIDIA driver: ") + (reason == nullptr ? library : reason),
                   "Install a driver >= " + std::to_string(oldestDriverSeries(neededMajor)) +
                       ", or use the embedded backend: backend: 'embedded'.");
  }
  const auto init = reinterpret_cast<InitFunction>(dlsym(handle, "cuInit"));
  const auto getVersion = reinterpret_cast<QueryFunction>(dlsym(handle, "cuDriverGetVersion"));
  const auto getCount = reinterpret_cast<QueryFunction>(dlsym(handle, "cuDeviceGetCount"));
  if (init == nullptr || getVersion == nullptr || getCount == nullptr) {
    return missing(library + " is not an NVIDIA driver", "Look for another libcuda.so.1 on LD_LIBRARY_PATH.");
  }
  DriverFacts facts;
  // Works before cuInit, which an old driver may refuse for other reasons.
  if (getVersion(&facts.cudaVersion) == 0 && facts.cudaVersion < neededMajor * 1000) {
    const std::string has =
        std::to_string(facts.cudaVersion / 1000) + "." + std::to_string(facts.cudaVersion % 1000 / 10);
    const std::string series = std::to_string(oldestDriverSeries(neededMajor));
    return fail(ErrorCode::kDriverTooOld, "driver",
                "CUDA " + std::to_string(neededMajor) + " needs an NVIDIA driver >= " + series +
                    "; this one runs CUDA " + has)
        .expecting(std::to_string(neededMajor) + ".0", has)
        .helped(neededMajor >= 13 ? "Update the driver, or install @nccl-ext/cuda12 instead of @nccl-ext/cuda13."
                                  : "Update the driver.");
  }
  if (const int result = init(0); result != 0) return cannotStart(result);
  if (const int result = getCount(&facts.devices); result != 0) return cannotStart(result);
  if (facts.devices == 0) return cannotStart(kCudaErrorNoDevice);
  return facts;
}

}  // namespace nccl_ext

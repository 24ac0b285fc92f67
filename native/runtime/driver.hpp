// SPDX-License-Identifier: Apache-2.0
// Whether this machine has an NVIDIA driver that fits, asked before the CUDA runtime is touched, so that the answer is
// a typed error.
#pragma once

#include <string>

#include "runtime/error.hpp"

namespace nccl_ext {

struct DriverFacts {
  int cudaVersion = 0;  // newest CUDA that it runs: 1000 x major + 10 x minor
  int devices = 0;      // at least 1
};

// Loads `library` and asks it. It stays loaded: the CUDA runtime uses the same one.
// ERR_DRIVER_MISSING: no library, or no device. ERR_DRIVER_TOO_OLD: it cannot run CUDA `neededMajor`.
Outcome<DriverFacts> probeDriver(int neededMajor, const std::string& library = "libcuda.so.1");

// The oldest driver series that runs a CUDA major (minor version compatibility): 525 for 12, 580 for 13.
int oldestDriverSeries(int cudaMajor);

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
// What happens once per process before the first rank: environment, driver, NCCL.
#pragma once

#include "nccl/api.hpp"
#include "runtime/driver.hpp"

namespace nccl_ext {

struct ProcessFacts {
  const NcclApi* api = nullptr;  // lives as long as the process
  DriverFacts driver;
};

// Sets the variables that CUDA and NCCL read when they start (unless the user set them), then asks the driver, then
// loads NCCL. Ranks share a GPU when there are more on this host than GPUs, or when `devicesRepeat`. A failure is not
// remembered: the next call tries again. ERR_DRIVER_MISSING, ERR_DRIVER_TOO_OLD, ERR_NCCL_NOT_FOUND, ERR_NCCL_VERSION.
Outcome<ProcessFacts> prepareProcess(int cudaMajor, int ranksOnHost, bool devicesRepeat);

}  // namespace nccl_ext

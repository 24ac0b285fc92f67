// SPDX-License-Identifier: Apache-2.0
// What happens once per process before the first rank: environment, driver, NCCL.
#pragma once

#include "nccl/api.hpp"
#include "nccl/search.hpp"
#include "runtime/driver.hpp"
#include "runtime/probe_devices.hpp"

namespace nccl_ext {

// Where the user says NCCL is, besides the environment; empty: nothing said.
struct NcclChoice {
  std::string library;  // wins over NCCL_EXT_NCCL_LIBRARY
  std::string home;     // wins over NCCL_HOME
};

struct ProcessFacts {
  const NcclApi* api = nullptr;  // lives as long as the process
  DriverFacts driver;
  std::vector<ProbedDevice> devices;
  bool mayShareGpu = true;  // NCCL lets ranks of this process share a GPU with others
};

// Sets the variables that CUDA and NCCL read when they start (unless the user set them), then asks the driver, then
// loads NCCL, once for all environments of the process: another choice than the one that loaded it is
// ERR_INVALID_STATE. A failure is not remembered: the next call tries again.
// ERR_DRIVER_MISSING, ERR_DRIVER_TOO_OLD, ERR_NCCL_NOT_FOUND, ERR_NCCL_VERSION.
Outcome<ProcessFacts> prepareProcess(int cudaMajor, const NcclChoice& choice);

// Hardware queues of a GPU that a process asks for (CUDA_DEVICE_MAX_CONNECTIONS): 32, and 8 where an MPS server listens in
// `mpsDirectory` (none: in its default place).
int queuesFor(const char* mpsDirectory);

// Of this process, and so the most streams that it may have on a GPU.
int queuesPerDevice();

// Where NCCL is looked for: `choice`, then what the environment says.
NcclSearch searchFor(int cudaMajor, const NcclChoice& choice);

}  // namespace nccl_ext

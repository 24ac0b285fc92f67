// SPDX-License-Identifier: Apache-2.0
// The GPUs of this machine as the driver describes them, for `doctor`: asked without a context, which would take memory
// on each of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nccl_ext {

// `ProbedDevice` of contract/cuda-package.ts; what the driver does not tell is empty or 0.
struct ProbedDevice {
  int index = 0;
  std::string name;
  std::string uuid;               // `GPU-` and hex, as nvidia-smi prints it
  std::string computeCapability;  // as in 9.0
  int multiprocessors = 0;
  std::uint64_t memoryBytes = 0;
  std::vector<int> peers;  // GPUs whose memory this one reads and writes directly
};

// After probeDriver has found `count` devices through the same library.
std::vector<ProbedDevice> probeDevices(int count, const std::string& library = "libcuda.so.1");

}  // namespace nccl_ext

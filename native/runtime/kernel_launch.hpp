// SPDX-License-Identifier: Apache-2.0
// A launch of a user's kernel as data, and whether it fits the kernel: what the driver would refuse with "invalid
// argument", or take and read wrongly, is said parameter by parameter.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/module_state.hpp"

namespace nccl_ext {

using Dimensions = std::array<std::int64_t, 3>;

// As in contract/runtime.ts.
struct KernelLaunch {
  Dimensions grid{};
  Dimensions block{};
  std::int64_t sharedBytes = -1;  // dynamic
  Bytes parameters;
  std::vector<std::int64_t> offsets;  // ascending, one per parameter
  std::int64_t guardOffset = -1;      // of a KernelGuard in `parameters`; -1: none
  std::vector<Handle> buffers;
};

// ERR_INVALID_ARGUMENT: malformed or beyond what any GPU takes. ERR_MODULE: does not fit this kernel.
Status checkLaunch(const KernelLaunch& launch, const KernelState& kernel);

}  // namespace nccl_ext

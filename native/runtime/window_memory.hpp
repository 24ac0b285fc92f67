// SPDX-License-Identifier: Apache-2.0
// What memory may become a window. NCCL answers for some kinds with an error on one rank, while the others wait forever, and
// for some not at all, so it is decided here, by what the memory is.
#pragma once

#include <optional>

#include "runtime/device_memory.hpp"

namespace nccl_ext {

// Why memory of rank `rank` cannot be one, or none. ERR_INVALID_ARGUMENT, ERR_UNSUPPORTED.
std::optional<ErrorRecord> windowProblem(const DeviceMemory& memory, int rank, const char* op);

}  // namespace nccl_ext

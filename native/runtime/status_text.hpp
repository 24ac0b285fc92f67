// SPDX-License-Identifier: Apache-2.0
// The sentence for a record that a kernel wrote.
#pragma once

#include "runtime/error.hpp"
#include "runtime/shared/status.hpp"

namespace nccl_ext {

// `rank` is the one whose kernel wrote it.
ErrorRecord recordOf(const DeviceStatus& status, int rank);

}  // namespace nccl_ext

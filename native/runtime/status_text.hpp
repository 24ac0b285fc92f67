// SPDX-License-Identifier: Apache-2.0
// The sentence for a record that a kernel wrote.
#pragma once

#include "runtime/error.hpp"
#include "runtime/shared/guarded.hpp"

namespace nccl_ext {

// `rank` is the one whose kernel wrote it; `since` says what made it unusable, where a record only says that it is.
ErrorRecord recordOf(const DeviceStatus& status, int rank, const std::string& since = "an earlier error");

}  // namespace nccl_ext

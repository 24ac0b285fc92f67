// SPDX-License-Identifier: Apache-2.0
// Why a wait for a peer ended.
#pragma once

#include <cstdint>

namespace nccl_ext {

// The greatest wins where several waits of a kernel end.
enum class WaitEnd : std::int32_t { kArrived, kExpired, kStopped };

static_assert(static_cast<int>(WaitEnd::kArrived) == 0 && WaitEnd::kExpired < WaitEnd::kStopped);

}  // namespace nccl_ext

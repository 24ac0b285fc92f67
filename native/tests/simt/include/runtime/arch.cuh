// SPDX-License-Identifier: Apache-2.0
// In place of runtime/arch.cuh: the machine of tests/simt can do what sm_90 can.
#pragma once

namespace nccl_ext {

inline constexpr int kArch = 900;
inline constexpr bool kBulkCopy = true;

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
// Opens an NCCL library, checks it through the pointers that will be called, and fills the table.
#pragma once

#include <vector>

#include "nccl/api.hpp"
#include "nccl/search.hpp"
#include "runtime/error.hpp"

namespace nccl_ext {

// The oldest library that runs code compiled against our headers; newer ones are accepted (NCCL keeps its structures
// compatible).
inline constexpr int kOldestNccl = NCCL_VERSION_CODE;

// The first candidate that opens and fits. A candidate that the user named is the only one that counts.
// ERR_NCCL_NOT_FOUND lists every path that was tried and why it failed. ERR_NCCL_VERSION: too old, incomplete, or built
// for a CUDA that `driverCudaMajor` (0: do not check) cannot run.
Outcome<NcclApi> loadNccl(const std::vector<NcclCandidate>& candidates, int driverCudaMajor);

// 23007 becomes "2.30.7".
std::string ncclVersionText(int version);

}  // namespace nccl_ext

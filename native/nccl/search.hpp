// SPDX-License-Identifier: Apache-2.0
// Where libnccl.so.2 is looked for, in order. Pure: the environment comes in as data, only folder names are read from
// disk.
#pragma once

#include <string>
#include <vector>

namespace nccl_ext {

struct NcclSearch {
  std::string library;      // NCCL_EXT_NCCL_LIBRARY: nothing else is tried
  std::string ncclHome;     // NCCL_HOME
  std::string cacheHome;    // XDG_CACHE_HOME, or ~/.cache
  std::string virtualEnv;   // VIRTUAL_ENV
  std::string condaPrefix;  // CONDA_PREFIX
  std::string cudaHome;     // CUDA_HOME, or CUDA_PATH
  int cudaMajor = 0;        // of this backend; its own build of NCCL comes first
};

struct NcclCandidate {
  std::string path;
  std::string reason;   // the variable or place that named it
  bool chosen = false;  // named by the user: a failure is final
};

NcclSearch searchFromEnvironment(int cudaMajor);

std::vector<NcclCandidate> ncclCandidates(const NcclSearch& search);

}  // namespace nccl_ext

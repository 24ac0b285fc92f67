// SPDX-License-Identifier: Apache-2.0
// What every rank tells the others before the first call of NCCL: where it runs, what it is built of, and the options
// that must be equal. Whoever does not fit is an error on every rank; ranks that share a GPU are counted from it.
#pragma once

#include "runtime/meeting.hpp"

namespace nccl_ext {

struct RankIdentity {
  // Where. Two ranks share a GPU when both are equal: containers of one machine have one boot id and many host names.
  std::string host;  // NCCL_HOSTID, boot id of the machine, or its host name
  std::string gpu;   // UUID
  int multiprocessors = 0;
  bool mayShareGpu = true;  // NCCL_MULTI_RANK_GPU_ENABLE of this process
  // What, and how it was asked for: equal on all ranks.
  std::string backend;  // version of the package
  int contract = 0;
  int cudaMajor = 0;
  int nccl = 0;  // as ncclGetVersion gives it
  std::int64_t timeoutMs = 0;
  // Of this rank alone.
  int sms = 0;  // that it asks for; 0: the default share
};

// Of the machine that this process runs on.
std::string hostIdentity();

Bytes encode(const RankIdentity& identity);
std::optional<RankIdentity> decodeIdentity(const Bytes& bytes);

// The first reason why these ranks make no world, the same on every rank; `self` is the one that reports.
// ERR_NCCL_VERSION, ERR_DISAGREEMENT: they differ from rank 0. ERR_UNSUPPORTED: they share a GPU and one's environment
// forbids it. ERR_INVALID_ARGUMENT: a GPU has fewer SMs than its ranks ask for together, default shares included.
std::optional<ErrorRecord> misfitOf(const std::vector<RankIdentity>& ranks, int self);

// How many of `ranks` are on the GPU of `rank`, itself included.
int ranksOnGpuOf(const std::vector<RankIdentity>& ranks, int rank);

// SMs that the work in flight of `rank` may hold. A fifth of the GPU stays free by default: kernels that wait for each
// other have been seen to hang nearer to full.
int smBudgetOf(const std::vector<RankIdentity>& ranks, int rank);

}  // namespace nccl_ext

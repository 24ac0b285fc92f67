// SPDX-License-Identifier: Apache-2.0
// prepareTransfer on a rank's worker: ranks show each other their parts, check them, find each other's memory, and agree
// that nothing is wrong, before anything is left behind. No byte of a destination is touched.
#pragma once

#include "m2n/device_program.hpp"
#include "m2n/peer_part.hpp"
#include "m2n/sent_program.hpp"
#include "m2n/transfer_paths.hpp"
#include "runtime/objects.hpp"

namespace nccl_ext {

// What the owner's thread found out: the part, or why there is none.
struct PrepareRequest {
  std::string digest;
  bool verify = false;
  std::optional<int> sms;  // as in PrepareConfig
  std::optional<ErrorRecord> problem;
  PreparePart part;
  StagingLimits staging;
  std::vector<Exposure> memories;  // of part.memories
};

struct Preparation {
  DeviceProgram program;
  std::vector<TransferPath> paths;
  DeviceMemory sums;                               // of verified transfers, as senders send them
  std::shared_ptr<const DeviceMemory> block;       // control cells, which peers write
  std::optional<Exported> exported;                // of the block
  std::vector<std::shared_ptr<const void>> holds;  // of memory that its kernels write
};

// After a refusal every rank stays usable; after any other failure ranks may be out of step.
struct PrepareAttempt {
  Outcome<std::shared_ptr<Preparation>> result;
  bool refused = false;
  bool awaited = false;  // the others wait for this rank, some of them in NCCL, and must be told
};

PrepareAttempt prepareTransfer(RankState& rank, const PrepareRequest& request);

}  // namespace nccl_ext

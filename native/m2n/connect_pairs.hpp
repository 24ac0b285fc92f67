// SPDX-License-Identifier: Apache-2.0
// Connects the pairs of ranks that will send to each other while a transfer is prepared: NCCL does it at their first
// group, which waits for both and must not be one that a stream already holds.
#pragma once

#include "m2n/device_program.hpp"
#include "runtime/objects.hpp"

namespace nccl_ext {

struct OpenedSends {
  Status status = ok();
  bool awaited = false;  // the others wait for this rank, some of them in NCCL, and must be told
};

// Collective. The communicator of transfers, made unless it is there: on every rank or on none.
OpenedSends openSends(RankState& rank);

// Collective, on the rank's worker, after all ranks have loaded their programs. ERR_TIMEOUT ends the communicator.
Status connectPairs(RankState& rank, const DeviceProgram& program, Clock::time_point deadline);

// When connecting that begins now must have ended.
Clock::time_point connectDeadline(const RankState& rank);

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
// Makes one rank able to communicate, and ends that again. Both run on the rank's worker, all ranks at the same time.
#pragma once

#include "runtime/objects.hpp"

namespace nccl_ext {

// Context, communicator, control block. When it fails the rank leaves its world's meetings, so that the others fail
// too.
Status openRank(RankState& rank, Clock::time_point deadline);

// Windows, communicator and memory, in this order. `broken`: without the peers.
Status closeRank(RankState& rank, bool broken, Clock::time_point deadline);

}  // namespace nccl_ext

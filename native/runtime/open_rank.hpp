// SPDX-License-Identifier: Apache-2.0
// Makes one rank able to communicate, and ends that again. Both run on the rank's worker, all ranks at the same time.
#pragma once

#include "runtime/objects.hpp"

namespace nccl_ext {

// Context, communicator, control block. When it fails the rank leaves its world's meetings, so that the others fail
// too.
Status openRank(RankState& rank, Clock::time_point deadline);

// The two halves of what follows the context, for ranks that are split from others. Memory, as much as a world of `most`
// ranks needs: waits for nobody.
Status allocateRank(RankState& rank, const NcclApi& api, int most);
// What peers reach of it, through the rank's open communicator: collective over `world`.
Status connectRank(RankState& rank, const World& world, Clock::time_point deadline);

// Windows, communicator and memory, in this order. `broken`: without the peers.
Status closeRank(RankState& rank, bool broken, Clock::time_point deadline);

}  // namespace nccl_ext

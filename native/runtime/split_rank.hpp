// SPDX-License-Identifier: Apache-2.0
// Makes one rank's part of the worlds that a world is split into. Runs on the worker of the rank that is split, all
// ranks at the same time, as one task: their collective calls stay in the same order.
#pragma once

#include "runtime/objects.hpp"

namespace nccl_ext {

// What one rank asks for.
struct SplitRequest {
  std::int64_t color = 0;  // -1: it becomes part of no world
  std::int64_t key = 0;
};

// What came of it. Without `world` and error the rank asked for none.
struct SplitResult {
  std::shared_ptr<World> world;  // shared by its ranks in this process
  int rank = -1;
  int size = 0;
  std::optional<ErrorRecord> error;
  bool poisonsParent = false;  // the ranks of the parent may be out of step
};

// Opens `child`, a rank that nobody has seen, on success. Who asks for what is agreed first: a wrong color or key, or no
// memory, is an error on every rank, and the parent stays usable. ERR_TIMEOUT names who does not come.
SplitResult splitRank(RankState& parent, RankState& child, const SplitRequest& request);

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
// Work that did not end by the deadline of its rank's disposal, such as a copy behind long work of a stream that others own: it may
// still run at any time, and its host functions then read and write what its operations hold.
#pragma once

#include "runtime/objects.hpp"

namespace nccl_ext {

// Keeps for ever what the rank's unfinished operations hold, and the rank's words and boxes. On the owner's thread, before graphs and
// streams go; device memory is not among it, because freeing that waits for what runs.
void keepOverdueWork(const RankState& rank);

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
// How ranks refuse a collective call together, before anything that one of them could not finish: each brings what is
// wrong on its side, and all give up when there is anything.
#pragma once

#include "runtime/meeting.hpp"

namespace nccl_ext {

// What a rank brings: empty when nothing is wrong, else the record.
Bytes verdictOf(const std::optional<ErrorRecord>& problem);

// Why `rank` gives up, if it must: its own problem, else that of the first rank that has one. `verdicts` by rank.
std::optional<ErrorRecord> refusalOf(const char* op, const std::vector<Bytes>& verdicts,
                                     const std::optional<ErrorRecord>& own, int rank);

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
#include "runtime/verdict.hpp"

#include "runtime/wire.hpp"

namespace nccl_ext {

Bytes verdictOf(const std::optional<ErrorRecord>& problem) {
  return problem ? Writer().record(*problem).take() : Bytes();
}

std::optional<ErrorRecord> refusalOf(const char* op, const std::vector<Bytes>& verdicts,
                                     const std::optional<ErrorRecord>& own, int rank) {
  if (own) return own;
  for (std::size_t peer = 0; peer < verdicts.size(); peer++) {
    if (verdicts[peer].empty()) continue;
    ErrorRecord error = Reader(verdicts[peer]).record();
    error.op = op;
    error.detail = "rank " + std::to_string(peer) + " could not take part in " + op + ": " + error.detail;
    error.rank = rank;
    error.peer = static_cast<int>(peer);
    return error;
  }
  return std::nullopt;
}

}  // namespace nccl_ext

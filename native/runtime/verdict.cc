// SPDX-License-Identifier: Apache-2.0
#include "runtime/verdict.hpp"

namespace nccl_ext {

Bytes verdictOf(const std::optional<ErrorRecord>& problem) {
  if (!problem) return {};
  Bytes verdict{static_cast<std::uint8_t>(problem->code)};
  verdict.insert(verdict.end(), problem->detail.begin(), problem->detail.end());
  return verdict;
}

std::optional<ErrorRecord> refusalOf(const char* op, const std::vector<Bytes>& verdicts,
                                     const std::optional<ErrorRecord>& own, int rank) {
  if (own) return own;
  for (std::size_t peer = 0; peer < verdicts.size(); peer++) {
    const Bytes& verdict = verdicts[peer];
    if (verdict.empty()) continue;
    return fail(static_cast<ErrorCode>(verdict[0]), op,
                "rank " + std::to_string(peer) + " could not take part in " + op + ": " +
                    std::string(verdict.begin() + 1, verdict.end()))
        .ofRank(rank)
        .fromPeer(static_cast<int>(peer));
  }
  return std::nullopt;
}

}  // namespace nccl_ext

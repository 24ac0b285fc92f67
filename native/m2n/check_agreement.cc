// SPDX-License-Identifier: Apache-2.0
#include "m2n/check_agreement.hpp"

#include <map>

namespace nccl_ext {
namespace {

// `values` by rank. The first rank that differs from the most common value is at fault.
std::optional<ErrorRecord> disagreement(const std::vector<std::string>& values, const std::string& field, int rank) {
  std::map<std::string, int> votes;
  for (const std::string& value : values) votes[value]++;
  if (votes.size() == 1) return std::nullopt;
  std::string common = values[0];
  for (const std::string& value : values) {
    if (votes[value] > votes[common]) common = value;
  }
  std::vector<int> others;
  for (std::size_t other = 0; other < values.size(); other++) {
    if (values[other] != common) others.push_back(static_cast<int>(other));
  }
  return fail(ErrorCode::kDisagreement, kPrepareOp,
              rankNames(others) + " and the others hold different values of " + field + " in " + kPrepareOp)
      .ofRank(rank)
      .fromPeer(others[0])
      .expecting(common, values[static_cast<std::size_t>(others[0])])
      .helped("Every rank must pass the same " + field + ".");
}

}  // namespace

std::optional<ErrorRecord> agreementProblem(const std::vector<PeerPart>& parts, int rank) {
  std::vector<std::string> plans, paths;
  for (const PeerPart& part : parts) {
    plans.push_back(part.digest + (part.verify ? ", verified" : ""));
    paths.push_back(part.path);
  }
  const auto problem = disagreement(plans, "plan digest", rank);
  return problem ? problem : disagreement(paths, "path", rank);
}

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
#include "m2n/touched_runs.hpp"

#include <algorithm>

namespace nccl_ext {
namespace {

constexpr double kMaxRuns = 4e6;

struct Run {
  std::int64_t start;
  std::int64_t end;
};

double countRuns(const std::vector<TouchedMove>& moves) {
  double runs = 0;
  for (const TouchedMove& move : moves) {
    double product = 1;
    for (const std::int64_t count : move.counts) product *= static_cast<double>(count);
    runs += product;
  }
  return runs;
}

// Sorted, merged where a run follows another.
std::vector<Run> listRuns(const std::vector<TouchedMove>& moves) {
  std::vector<Run> runs;
  for (const TouchedMove& move : moves) {
    for (std::int64_t i = 0; i < move.counts[0]; i++) {
      for (std::int64_t j = 0; j < move.counts[1]; j++) {
        for (std::int64_t k = 0; k < move.counts[2]; k++) {
          const std::int64_t start = move.start + i * move.strides[0] + j * move.strides[1] + k * move.strides[2];
          runs.push_back({start, start + move.runBytes});
        }
      }
    }
  }
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.start < b.start; });
  std::vector<Run> merged;
  for (const Run& run : runs) {
    if (!merged.empty() && merged.back().end >= run.start)
      merged.back().end = std::max(merged.back().end, run.end);
    else
      merged.push_back(run);
  }
  return merged;
}

}  // namespace

static_assert(kMoveLoops == 3, "listRuns has a loop for each");

bool runsMeet(const std::vector<TouchedMove>& a, const std::vector<TouchedMove>& b) {
  if (countRuns(a) + countRuns(b) > kMaxRuns) return true;
  const std::vector<Run> first = listRuns(a), second = listRuns(b);
  for (std::size_t i = 0, k = 0; i < first.size() && k < second.size();) {
    if (first[i].start < second[k].end && second[k].start < first[i].end) return true;
    if (first[i].end <= second[k].start)
      i++;
    else
      k++;
  }
  return false;
}

}  // namespace nccl_ext

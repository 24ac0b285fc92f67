// SPDX-License-Identifier: Apache-2.0
#include "runtime/overdue_work.hpp"

namespace nccl_ext {

void keepOverdueWork(const RankState& rank) {
  // Of all environments of the process, and never destroyed: what JavaScript lent may not go on another thread.
  static std::mutex mutex;
  static Keeps& kept = *new Keeps();
  const std::lock_guard<std::mutex> lock(mutex);
  const auto keep = [](const Keeps& held) { kept.insert(kept.end(), held.begin(), held.end()); };
  for (const StreamState* stream : rank.streams) {
    if (stream->queue.empty()) continue;
    kept.push_back(stream->owner);
    for (const Operation& operation : stream->queue) {
      keep(operation.keeps);
      if (operation.graph) keep(operation.graph->content.keeps);
    }
  }
}

}  // namespace nccl_ext

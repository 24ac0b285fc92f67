// SPDX-License-Identifier: Apache-2.0
// Splitting a rank: what the owner's thread does before and after the workers (runtime/split_rank.hpp). A child has its
// own worker, meetings, streams and memory; it dies before its parent, and a parent that fails takes it along.
#include "runtime/runtime.hpp"
#include "runtime/split_rank.hpp"

namespace nccl_ext {

void Runtime::splitRank(Handle handle, std::int64_t color, std::int64_t key, Done<std::optional<SplitRank>> done) {
  constexpr const char* kOp = "split";
  Outcome<Rank> found = rankOf(handle, kOp);
  if (!found) return done(found.error());
  const Rank parent = found.value();
  if (const auto error = unusable(*parent, kOp)) return done(*error);
  const Rank child = std::make_shared<RankState>();
  child->rank = parent->rank;
  child->device = parent->device;
  child->gpu = parent->gpu;
  child->parent = parent;
  child->worker = std::make_unique<Worker>();
  // From here on, so that what stops the parent stops it too.
  parent->children.insert(child);
  parent->worker->post([this, parent, child, request = SplitRequest{color, key}, done] {
    mailbox_.post([this, parent, child, done, result = nccl_ext::splitRank(*parent, *child, request)] {
      if (!result.world) {
        parent->children.erase(child);
        if (result.error && result.poisonsParent) poison(*parent, *result.error);
        if (result.error) return done(*result.error);
        return done(std::optional<SplitRank>());
      }
      child->world = result.world;
      child->world->locals.push_back(child.get());
      child->opened = true;
      watchLosses(child->world, child->rank);
      child->handle = handles_.add(child);
      ranks_.insert(child);
      if (parent->poison) poison(*child, *parent->poison);
      if (!parent->disposing) return done(std::optional<SplitRank>({child->handle, result.rank, result.size}));
      // Nobody will get its handle.
      const ErrorRecord error = disposed(*parent);
      disposeRank(child->handle, [done, error](const Status&) { done(error); });
    });
  });
}

}  // namespace nccl_ext

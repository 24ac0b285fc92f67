// SPDX-License-Identifier: Apache-2.0
// Ranks between the opening and the closing of their world: exchange, abort, dispose.
//
// Closing NCCL's communicators is collective among the ranks of a process, but ranks are disposed one after the other
// by one thread. So a disposed rank only drains and drops its objects; the last one of a world closes them all.
#include "m2n/prepared_transfer.hpp"
#include "runtime/cuda_error.hpp"
#include "runtime/overdue_work.hpp"
#include "runtime/runtime.hpp"

namespace nccl_ext {
namespace {

std::string yesOrNo(bool value) {
  return value ? "yes" : "no";
}

// Who drives puts from kernels to other NVLink domains.
std::string ginText(ncclGinType_t type) {
  switch (type) {
    case NCCL_GIN_TYPE_NONE:
      return "none";
    case NCCL_GIN_TYPE_PROXY:
      return "proxy (a host thread)";
    case NCCL_GIN_TYPE_GDAKI:
      return "gdaki (the GPU)";
    case NCCL_GIN_TYPE_GPI:
      return "gpi";
  }
  return "type " + std::to_string(static_cast<int>(type));
}

}  // namespace

Status Runtime::abortRank(Handle handle, const std::string& reason) {
  Outcome<Rank> found = rankOf(handle, "abort");
  if (!found) return found.error();
  RankState& rank = *found.value();
  const ErrorRecord error =
      fail(ErrorCode::kAborted, "abort", "rank " + std::to_string(rank.rank) + " was aborted: " + reason)
          .ofRank(rank.rank);
  poison(rank, error);
  abortWaits(rank, error);
  return ok();
}

// Ends what this rank and its children wait for, on the host and at the other ranks of this process.
void Runtime::abortWaits(RankState& rank, const ErrorRecord& reason) {
  rank.stop = true;
  for (const Rank& child : rank.children) abortWaits(*child, reason);
  if (!rank.world) return;
  rank.world->meeting->leave(rank.rank, reason);
  tellLocals(*rank.world, rank.rank);
}

std::optional<ErrorRecord> Runtime::poisonOf(Handle handle) {
  Outcome<Rank> rank = handles_.find<RankState>(handle, "poisonOf");
  if (!rank) return rank.error();
  notice(*rank.value());
  return rank.value()->poison;
}

Outcome<DeviceInfo> Runtime::deviceOf(Handle handle) const {
  Outcome<Rank> found = handles_.find<RankState>(handle, "deviceOf");
  if (!found) return found.error();
  const RankState& rank = *found.value();
  return DeviceInfo{rank.device,     rank.gpu.name, rank.gpu.uuid, rank.gpu.multiprocessors,
                    rank.ranksOnGpu, rank.smBudget};
}

Outcome<Facts> Runtime::factsOf(Handle handle) const {
  Outcome<Rank> found = handles_.find<RankState>(handle, "factsOf");
  if (!found) return found.error();
  const RankState& rank = *found.value();
  const ncclCommProperties& comm = rank.properties;
  return Facts{{"ranks", std::to_string(rank.world->size)},
               {"lsaTeams", std::to_string(comm.nLsaTeams)},
               {"deviceApi", yesOrNo(comm.deviceApiSupport)},
               {"windows", yesOrNo(rank.world->size == 1 || rank.control.window != nullptr)},
               {"multicast", yesOrNo(comm.multimemSupport)},
               {"gin", ginText(comm.ginType)},
               {"railedGin", ginText(comm.railedGinType)},
               {"hostRma", yesOrNo(comm.hostRmaSupport)}};
}

void Runtime::exchange(Handle handle, const std::string& topic, Bytes payload, Done<std::vector<Bytes>> done) {
  constexpr const char* kOp = "exchange";
  Outcome<Rank> found = rankOf(handle, kOp);
  if (!found) return done(found.error());
  const Rank rank = found.value();
  if (const auto error = unusable(*rank, kOp)) return done(*error);
  rank->worker->post([this, rank, arrival = Arrival{kOp, topic, std::move(payload)}, done] {
    Outcome<std::vector<Bytes>> all =
        rank->world->meeting->gather(rank->rank, arrival, Clock::now() + rank->world->timeout);
    mailbox_.post([this, rank, all = std::move(all), done] {
      if (!all && poisons(all.error())) poison(*rank, all.error());
      done(all);
    });
  });
}

void Runtime::disposeRank(Handle handle, DoneStatus done) {
  Outcome<Rank> found = handles_.find<RankState>(handle, "dispose");
  if (!found) return done(found.error());
  const Rank rank = found.value();
  rank->disposeWaiters.push_back(std::move(done));
  if (rank->disposing) return;
  rank->disposing = true;
  disposeChildren(rank, [this, rank](const Status& children) {
    whenIdle(rank, [this, rank, children] { disposeDrained(rank, children); });
  });
}

// One that is still being opened is disposed when it is (split.cc).
void Runtime::disposeChildren(const Rank& rank, std::function<void(Status)> done) {
  std::vector<Rank> open;
  for (const Rank& child : rank->children) {
    if (child->opened) open.push_back(child);
  }
  if (open.empty()) return done(ok());
  const auto left = std::make_shared<std::pair<std::size_t, Status>>(open.size(), ok());
  for (const Rank& child : open) {
    disposeRank(child->handle, [left, done](const Status& status) {
      if (left->second && !status) left->second = status;
      if (--left->first == 0) done(left->second);
    });
  }
}

void Runtime::disposeDrained(const Rank& rank, Status children) {
  const auto finish = [waiters = std::exchange(rank->disposeWaiters, {}), children](const Status& status) {
    for (const DoneStatus& waiter : waiters) waiter(children ? status : children);
  };
  // Before its boxes go: why it leaves, and what peers may still write to.
  notice(*rank);
  releaseObjects(*rank);
  handles_.remove(rank->handle);
  if (const Rank parent = rank->parent.lock()) parent->children.erase(rank);
  if (--rank->world->open > 0) {
    rank->world->meeting->leave(rank->rank, departure(*rank));
    return finish(ok());
  }
  closeRanks(rank->world, finish);
}

// Calls `settle` when the rank's streams are empty, or its deadline has passed: kernels end by theirs.
void Runtime::whenIdle(const Rank& rank, std::function<void()> settle) {
  const auto busy = std::make_shared<std::atomic<int>>(static_cast<int>(rank->streams.size()));
  for (StreamState* raw : rank->streams) {
    // A recording stream has nothing in flight besides what is in its queue.
    const auto stream = handles_.find<StreamState>(raw->handle, "dispose").value();
    whenFinished(stream, stream->enqueued, [busy] { busy->fetch_sub(1); });
  }
  const auto deadline = Clock::now() + rank->world->timeout + kCloseGrace;
  poller_.watch(rank.get(), [this, busy, deadline, settle = std::move(settle)] {
    if (busy->load() > 0 && Clock::now() < deadline) return false;
    mailbox_.post(settle);
    return true;
  });
}

// NCCL's communicators end only when the graphs that hold their groups are gone, those that are being recorded included.
void Runtime::releaseGraphs(RankState& rank) {
  const DeviceGuard guard(rank.device);
  for (StreamState* stream : rank.streams) {
    if (stream->capture) {
      cudaGraph_t recorded = nullptr;
      (void)cudaStreamEndCapture(stream->stream.get(), &recorded);
      if (recorded != nullptr) (void)cudaGraphDestroy(recorded);
      stream->capture->release();
      rank.cells->give(stream->capture->box);
      stream->capture.reset();
    }
    stream->launched.clear();
    for (Operation& operation : stream->queue) operation.graph.reset();
  }
  for (GraphState* graph : std::exchange(rank.graphs, {})) handles_.remove(graph->handle);
}

// Drops what the rank owns. Windows and their memory stay until the communicators are closed: peers may still reach
// them. Everything else goes at once.
void Runtime::releaseObjects(RankState& rank) {
  const DeviceGuard guard(rank.device);
  // Work that did not end by its deadline may still use memory.
  bool drained = true;
  for (const StreamState* stream : rank.streams) drained = drained && stream->queue.empty();
  if (!drained) keepOverdueWork(rank);
  releaseGraphs(rank);
  for (PreparedTransfer* transfer : std::exchange(rank.transfers, {})) {
    const auto held = handles_.find<PreparedTransfer>(transfer->handle, "dispose").value();
    // Peers may still write to its flags: those hold them too. Before the streams fail: who waits to dispose it must not take work
    // that did not end for work that has.
    releaseTransfer(*held, drained);
  }
  for (StreamState* stream : std::exchange(rank.streams, {})) {
    poller_.forget(stream);
    // Work that did not end by its deadline: who waits for it learns that, and nothing holds the stream any more.
    if (!stream->queue.empty()) failStream(*stream, disposed(rank));
    // Unlocking pages may wait for kernels too.
    if (stream->staging) reaper_->post([staging = std::exchange(stream->staging, nullptr)] {});
    handles_.remove(stream->handle);
  }
  for (EventState* event : std::exchange(rank.events, {})) handles_.remove(event->handle);
  for (ModuleState* module : std::exchange(rank.modules, {})) {
    rank.oldModules.push_back(std::move(module->loaded));
    releaseModule(*module);
  }
  for (WindowState* window : std::exchange(rank.windows, {})) {
    rank.oldMemory.push_back(std::move(window->table));
    handles_.remove(window->handle);
  }
  for (BufferState* buffer : std::exchange(rank.buffers, {})) {
    const auto bytes = static_cast<std::int64_t>(buffer->memory.ownBytes());
    allocatedBytes_ -= bytes;
    dyingBytes_->fetch_add(bytes);
    const bool given = buffer->exposed && rank.poison;
    if (drained && !given && buffer->windows == 0 && buffer->leaving == 0) {
      reap(*buffer);
    } else {
      rank.oldBytes += bytes;
      rank.oldMemory.push_back(std::move(buffer->memory));
    }
    handles_.remove(buffer->handle);
  }
}

}  // namespace nccl_ext

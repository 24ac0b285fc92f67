// SPDX-License-Identifier: Apache-2.0
// Windows: memory that every rank can address. What may become one is agreed before NCCL sees it, because NCCL makes
// the other ranks wait forever when one rank's memory is of the wrong kind.
#include <algorithm>

#include "runtime/cuda_error.hpp"
#include "runtime/peer_table.hpp"
#include "runtime/runtime.hpp"
#include "runtime/verdict.hpp"
#include "runtime/window_memory.hpp"

namespace nccl_ext {
namespace {

constexpr const char* kOp = "registerWindow";
constexpr const char* kFree = "freeWindow";

// What a rank brings. The buffer itself is its owner's, who may let it go while the worker waits for the other ranks; its
// memory stays until the communicator is closed.
struct Part {
  void* address = nullptr;
  std::size_t bytes = 0;
  std::optional<ErrorRecord> problem;
};

std::optional<ErrorRecord> problemOf(const Outcome<std::shared_ptr<BufferState>>& buffer, const RankState& rank) {
  if (!buffer) return buffer.error();
  if (auto problem = windowProblem(buffer.value()->memory, rank.rank, kOp)) return problem;
  if (rank.world->size > 1 && rank.control.window == nullptr) {
    return fail(ErrorCode::kUnsupported, kOp,
                "NCCL cannot make windows on the GPU of rank " + std::to_string(rank.rank))
        .ofRank(rank.rank)
        .helped("`npx nccl-ext doctor` shows which GPUs reach each other.");
  }
  return std::nullopt;
}

// Who may still read the window's table of peers.
std::string userOf(const BufferState& buffer) {
  if (buffer.graphs > 0) return "a graph";
  return buffer.inFlight > 0 ? "queued work" : "";
}

struct Registered {
  ncclWindow_t window = nullptr;
  std::vector<void*> peers;
  std::shared_ptr<DeviceMemory> table;
};

// What came of a registration. After a refusal every rank stays usable; after any other failure ranks may be out of
// step.
struct Attempt {
  Outcome<Registered> result;
  bool refused = false;
  bool given = false;  // NCCL has the memory, or may still take it
};

// On the rank's worker.
Attempt registerOnAll(RankState& rank, const Part& part) {
  World& world = *rank.world;
  const auto deadline = Clock::now() + world.timeout;
  std::optional<ErrorRecord> problem = part.problem;
  // Before the ranks agree, so that a rank without memory for it is a refusal.
  Outcome<DeviceMemory> table = allocatePeerTable(*world.api, rank.device, static_cast<std::size_t>(world.size));
  if (!problem && !table) problem = table.error();
  Outcome<std::vector<Bytes>> verdicts = world.meeting->gather(rank.rank, {kOp, kOp, verdictOf(problem)}, deadline);
  if (!verdicts) return {verdicts.error(), verdicts.error().code == ErrorCode::kDisagreement};
  if (const auto refused = refusalOf(kOp, verdicts.value(), problem, rank.rank)) return {*refused, true};
  const DeviceGuard guard(rank.device);
  Registered out;
  out.table = std::make_shared<DeviceMemory>(std::move(table.value()));
  if (world.size == 1) {
    // Alone, a rank's window is its own memory.
    out.peers.push_back(part.address);
  } else {
    Outcome<ncclWindow_t> window =
        rank.comm->registerWindow(part.address, std::max<std::size_t>(part.bytes, 1), deadline);
    if (!window) return {window.error(), false, true};
    out.window = window.value();
    // Its own part a rank reaches by the buffer's address; NCCL has a second one for it.
    for (int peer = 0; peer < world.size; peer++)
      out.peers.push_back(peer == rank.rank ? part.address : rank.comm->peerAddress(out.window, peer));
  }
  if (const Status filled = fillPeerTable(*out.table, out.peers, kOp); !filled) return {filled.error(), false, true};
  return {out, false, true};
}

}  // namespace

void Runtime::registerWindow(Handle rankHandle, Handle bufferHandle, Done<Handle> done) {
  Outcome<Rank> found = rankOf(rankHandle, kOp);
  if (!found) return done(found.error());
  const Rank rank = found.value();
  if (const auto error = unusable(*rank, kOp)) return done(*error);
  const Outcome<Buffer> buffer = bufferFor(bufferHandle, *rank, 0, 0, kOp);
  Part part;
  part.problem = problemOf(buffer, *rank);
  if (buffer) {
    part.address = buffer.value()->memory.address();
    part.bytes = buffer.value()->memory.bytes();
    buffer.value()->windows++;  // busy from here on
  }
  rank->worker->post([this, rank, buffer, part, done] {
    mailbox_.post([this, rank, buffer, done, attempt = registerOnAll(*rank, part)] {
      const Outcome<Registered>& registered = attempt.result;
      if (!registered) {
        if (buffer) buffer.value()->windows--;
        if (attempt.given) buffer.value()->exposed = true;
        if (!attempt.refused) poison(*rank, registered.error());
        return done(registered.error());
      }
      if (rank->disposing) {
        // Nobody will get its handle. NCCL's window and the buffer's memory go with the communicator, as others' do.
        reaper_->post([table = registered.value().table] { *table = DeviceMemory(); });
        return done(disposed(*rank));
      }
      auto window = std::make_shared<WindowState>();
      window->owner = rank;
      window->buffer = buffer.value();
      window->window = registered.value().window;
      window->peers = registered.value().peers;
      window->table = std::move(*registered.value().table);
      window->handle = handles_.add(window);
      rank->windows.insert(window.get());
      done(window->handle);
    });
  });
}

Status Runtime::freeWindow(Handle handle) {
  Outcome<std::shared_ptr<WindowState>> found = handles_.find<WindowState>(handle, kFree);
  if (!found) return found.error();
  const auto window = found.value();
  const Rank rank = window->owner;
  for (StreamState* stream : rank->streams) retire(*stream);
  if (const std::string user = userOf(*window->buffer); !user.empty()) {
    return fail(ErrorCode::kBusy, kFree,
                user + " still uses the buffer of this window of rank " + std::to_string(rank->rank))
        .ofRank(rank->rank)
        .helped("Free the graphs that use it, and synchronize the streams that use it, first.");
  }
  handles_.remove(handle);
  rank->windows.erase(window.get());
  // The buffer may be freed from now on; its memory outlives NCCL's window.
  window->buffer->windows--;
  window->buffer->leaving++;
  rank->worker->post([this, rank, window] {
    const DeviceGuard guard(rank->device);
    const Status freed = window->window == nullptr
                             ? ok()
                             : rank->comm->deregisterWindow(window->window, Clock::now() + rank->world->timeout);
    mailbox_.post([this, rank, window, freed] {
      reaper_->post([table = std::make_shared<DeviceMemory>(std::move(window->table))] { *table = DeviceMemory(); });
      BufferState& buffer = *window->buffer;
      if (!freed) {
        poison(*rank, freed.error());
        buffer.exposed = true;
      }
      if (--buffer.leaving == 0 && buffer.freed) letGo(buffer);
    });
  });
  return ok();
}

Outcome<WindowPeers> Runtime::windowPeers(Handle handle) const {
  Outcome<std::shared_ptr<WindowState>> found = handles_.find<WindowState>(handle, "windowPeers");
  if (!found) return found.error();
  const WindowState& window = *found.value();
  WindowPeers peers;
  peers.table = reinterpret_cast<std::uint64_t>(window.table.address());
  for (void* address : window.peers) peers.addresses.push_back(reinterpret_cast<std::uint64_t>(address));
  return peers;
}

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
#include "runtime/open_rank.hpp"

#include <algorithm>
#include <cstring>

#include "m2n/gate.hpp"
#include "m2n/hash.hpp"
#include "m2n/transfer.hpp"
#include "runtime/barrier.hpp"
#include "runtime/cuda_error.hpp"
#include "runtime/moves.hpp"
#include "runtime/peer_table.hpp"

namespace nccl_ext {
namespace {

constexpr const char* kOp = "init";

// Rank 0 makes the id of the communicator; everybody gets it.
Outcome<ncclUniqueId> shareUniqueId(RankState& rank, Clock::time_point deadline) {
  World& world = *rank.world;
  Bytes own;
  if (rank.rank == 0) {
    ncclUniqueId id;
    const ncclResult_t result = world.api->ncclGetUniqueId(&id);
    if (result != ncclSuccess) return ncclFailure(*world.api, nullptr, result, kOp).ofRank(0);
    own.resize(sizeof id);
    std::memcpy(own.data(), &id, sizeof id);
  }
  Outcome<std::vector<Bytes>> ids = world.meeting->gather(rank.rank, {kOp, "unique id", own}, deadline);
  if (!ids) return ids.error();
  ncclUniqueId id;
  if (ids.value()[0].size() != sizeof id)
    return fail(ErrorCode::kInternal, kOp, "rank 0 sent no unique id").ofRank(rank.rank).fromPeer(0);
  std::memcpy(&id, ids.value()[0].data(), sizeof id);
  return id;
}

Status cudaStatus(cudaError_t result, const RankState& rank, const char* what) {
  if (result == cudaSuccess) return ok();
  return cudaFailure(result, kOp, std::string(what) + " on GPU " + std::to_string(rank.device)).ofRank(rank.rank);
}

// The table of every rank's flags and, behind it, the epoch.
Status fillFlagTable(RankState& rank, const World& world) {
  ControlBlock& control = rank.control;
  std::vector<void*> table;
  control.reachable = true;
  for (int peer = 0; peer < world.size; peer++) {
    table.push_back(rank.comm->peerAddress(control.window, peer));
    control.reachable = control.reachable && table.back() != nullptr;
  }
  table.push_back(nullptr);  // the epoch, 0
  return fillPeerTable(control.peers, table, kOp);
}

std::size_t flagBytesOf(int size) {
  return static_cast<std::size_t>(size) * sizeof(BarrierFlag);
}

// Flags that are clear before any peer can reach them.
Status allocateControl(RankState& rank, const NcclApi& api, int most) {
  ControlBlock& control = rank.control;
  Outcome<DeviceMemory> flags = DeviceMemory::allocate(api, rank.device, flagBytesOf(most), MemoryKind::kSymmetric);
  if (!flags) return flags.error();
  Outcome<DeviceMemory> peers = allocatePeerTable(api, rank.device, static_cast<std::size_t>(most) + 1);
  if (!peers) return peers.error();
  control.flags = std::move(flags.value());
  control.peers = std::move(peers.value());
  const Status cleared = cudaStatus(cudaMemset(control.flags.address(), 0, flagBytesOf(most)), rank, "clearing flags");
  if (!cleared) return cleared;
  // cudaMemset returns before the memory is set.
  return cudaStatus(cudaStreamSynchronize(cudaStreamLegacy), rank, "clearing flags");
}

// It takes long for a GPU's first rank.
Status openContext(RankState& rank) {
  if (Status current = cudaStatus(cudaSetDevice(rank.device), rank, "making it current"); !current) return current;
  return cudaStatus(cudaFree(nullptr), rank, "creating the context");
}

// Every rank learns who the others are, before anything that waits for them. Processes start at different times, but one
// that does not come by the world's own timeout is missing.
Status meet(RankState& rank, Clock::time_point deadline) {
  constexpr Timeout kLeast{1000};
  World& world = *rank.world;
  const auto wait = std::min(deadline, Clock::now() + std::max(world.timeout, kLeast));
  RankIdentity own = world.identity;
  own.gpu = rank.gpu.uuid;
  own.multiprocessors = rank.gpu.multiprocessors;
  own.sms = rank.smsAsked;
  const Outcome<std::vector<Bytes>> here = world.meeting->gather(rank.rank, {kOp, "here", encode(own)}, wait);
  if (!here) return here.error();
  std::vector<RankIdentity> identities;
  for (std::size_t peer = 0; peer < here.value().size(); peer++) {
    const std::optional<RankIdentity> identity = decodeIdentity(here.value()[peer]);
    if (!identity) {
      return fail(ErrorCode::kBackendVersion, kOp,
                  "rank " + std::to_string(peer) + " runs another version of nccl-ext than rank " +
                      std::to_string(rank.rank))
          .ofRank(rank.rank)
          .fromPeer(static_cast<int>(peer));
    }
    identities.push_back(*identity);
  }
  if (const auto misfit = misfitOf(identities, rank.rank)) return *misfit;
  rank.ranksOnGpu = ranksOnGpuOf(identities, rank.rank);
  rank.smBudget = smBudgetOf(identities, rank.rank);
  return ok();
}

Status tryOpen(RankState& rank, Clock::time_point deadline) {
  World& world = *rank.world;
  if (Status met = meet(rank, deadline); !met) return met;
  if (Status context = openContext(rank); !context) return context;
  if (Status memory = allocateRank(rank, *world.api, world.size); !memory) return memory;
  if (Status loaded = cudaStatus(preloadBarrier(), rank, "loading kernels"); !loaded) return loaded;
  if (Status loaded = cudaStatus(preloadMoves(), rank, "loading kernels"); !loaded) return loaded;
  if (Status loaded = cudaStatus(preloadTransfer(rank.bulkCopies), rank, "loading kernels"); !loaded) return loaded;
  if (Status loaded = cudaStatus(preloadGate(), rank, "loading kernels"); !loaded) return loaded;
  rank.condition = std::make_shared<const GraphCondition>(GraphCondition::load(rank.device));
  if (Status loaded = cudaStatus(preloadHashes(), rank, "loading kernels"); !loaded) return loaded;
  Outcome<ncclUniqueId> id = shareUniqueId(rank, deadline);
  if (!id) return id.error();
  rank.comm = std::make_unique<Comm>(*world.api, rank.stop);
  if (Status opened = rank.comm->open(id.value(), rank.rank, world.size, deadline); !opened) return opened;
  rank.properties = rank.comm->properties();
  if (Status connected = connectRank(rank, world, deadline); !connected) return connected;
  // Nobody's barrier may arrive before everybody's flags are clear.
  const Outcome<std::vector<Bytes>> ready = world.meeting->gather(rank.rank, {kOp, "ready", {}}, deadline);
  return ready ? ok() : Status(ready.error());
}

}  // namespace

Status openRank(RankState& rank, Clock::time_point deadline) {
  Status opened = tryOpen(rank, deadline);
  if (!opened) rank.world->meeting->leave(rank.rank, opened.error());
  return opened;
}

// Pinned cells, event, flags: what the rank's streams will need.
Status allocateRank(RankState& rank, const NcclApi& api, int most) {
  Outcome<std::unique_ptr<PinnedCells>> cells = PinnedCells::create();
  if (!cells) return cells.error();
  rank.cells = std::move(cells.value());
  cudaEvent_t event = nullptr;
  if (Status made = cudaStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), rank, "an event"); !made)
    return made;
  rank.lastBarrier.reset(event);
  Outcome<std::shared_ptr<Staging>> staging = Staging::allocate(kStagingBytes);
  if (!staging) return staging.error();
  rank.spareStaging.push_back(std::move(staging.value()));
  return allocateControl(rank, api, most);
}

// A world of one rank, or one without windows, has flags that nobody else reaches.
Status connectRank(RankState& rank, const World& world, Clock::time_point deadline) {
  ControlBlock& control = rank.control;
  if (world.size == 1 || !rank.comm->properties().deviceApiSupport) return ok();
  Outcome<ncclWindow_t> window = rank.comm->registerWindow(control.flags.address(), flagBytesOf(world.size), deadline);
  // Every rank learns the same: the world goes on without windows and barriers, which then say so.
  if (!window && window.error().code == ErrorCode::kUnsupported) return ok();
  if (!window) return window.error();
  control.window = window.value();
  return fillFlagTable(rank, world);
}

Status closeRank(RankState& rank, bool broken, Clock::time_point deadline) {
  const DeviceGuard guard(rank.device);
  Status closed = rank.sends.close(broken, deadline);
  if (rank.comm) {
    const Status ended = rank.comm->close(broken || !closed, deadline);
    if (closed) closed = ended;
  }
  rank.comm.reset();
  rank.oldMemory.clear();
  rank.spareStaging.clear();
  rank.oldModules.clear();
  rank.condition.reset();
  rank.oldHolds.clear();
  rank.control = ControlBlock();
  return closed;
}

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
// A libnccl.so.2 whose ranks are threads of one process, or of several (fake_nccl_processes.hpp), and whose device memory is
// host memory. Variants by macro: FAKE_NCCL_VERSION, and FAKE_NCCL_INCOMPLETE, which lacks a function.
//
// It is non-blocking as the real one: collective calls go on, as ncclCommGetAsyncError says, until every rank has made
// them. ncclCommWindowRegister answers ncclSuccess and writes the handle later.
#include <nccl.h>
#include <nccl_device/core.h>

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>

#include "tests/fake/fake_nccl_processes.hpp"
#include "tests/fake/fake_nccl_world.hpp"

// The loader looks for this text in the file to learn the CUDA major.
__attribute__((used)) static const char fakeNcclBanner[] = "NCCL version 2.30.7+cuda" FAKE_NCCL_CUDA ".0";

std::mutex nccl_ext::fake::worldsMutex;

std::string nccl_ext::fake::numbered(const char* what, std::size_t number) {
  return what + std::to_string(number);
}

bool nccl_ext::fake::fails(const char* call, int rank) {
  const char* asked = std::getenv("FAKE_NCCL_FAILS");
  return asked != nullptr && asked == call + (" " + std::to_string(rank));
}

void nccl_ext::fake::tell(const World& world, const std::string& what, int rank, const std::string& line) {
  if (spread()) tell(world.name, what, rank, line);
}

using nccl_ext::fake::Mail;
using nccl_ext::fake::numbered;
using nccl_ext::fake::Split;
using nccl_ext::fake::tell;
using nccl_ext::fake::World;
using nccl_ext::fake::worldsMutex;

namespace {

std::map<long, std::shared_ptr<World>> worlds;
long nextId = 1;

// Takes note of what ranks of other processes have done meanwhile.
void hear(World& world) {
  if (!nccl_ext::fake::spread()) return;
  int joined = 0;
  for (int rank = 0; rank < world.size; rank++) {
    joined += nccl_ext::fake::told(world.name, "join", rank) ? 1 : 0;
    for (std::size_t number = 0; number < world.windows.size(); number++) {
      if (world.windows[number].count(rank) != 0) continue;
      if (const auto line = nccl_ext::fake::told(world.name, numbered("window", number), rank))
        world.windows[number][rank] = nccl_ext::fake::mapPlace(*line);
    }
    for (std::size_t number = 0; number < world.splits.size(); number++) {
      auto& asked = world.splits[number].asked;
      const auto line = nccl_ext::fake::told(world.name, numbered("split", number), rank);
      if (line && asked.count(rank) == 0) std::istringstream(*line) >> asked[rank].first >> asked[rank].second;
    }
  }
  world.joined = joined;
}

// Whether every rank has made the collective calls that this one made.
bool isDone(const ncclComm& comm) {
  hear(*comm.world);
  bool done = comm.world->joined == comm.size;
  for (int window = 0; window < comm.windows; window++) {
    done = done && static_cast<int>(comm.world->windows[static_cast<std::size_t>(window)].size()) == comm.size;
  }
  for (std::size_t split = 0; split < comm.splits; split++)
    done = done && static_cast<int>(comm.world->splits[split].asked.size()) == comm.size;
  return done;
}

// The child of a split that every rank has asked for.
ncclComm_t childOf(const ncclComm& comm) {
  Split& split = comm.world->splits[comm.splits - 1];
  const auto [color, key] = split.asked[comm.rank];
  if (color == NCCL_SPLIT_NOCOLOR) return nullptr;
  int rank = 0, size = 0;
  for (const auto& [peer, ask] : split.asked) {
    if (ask.first != color) continue;
    size++;
    rank += std::make_pair(ask.second, peer) < std::make_pair(key, comm.rank) ? 1 : 0;
  }
  auto& world = split.made[color];
  if (!world) world = std::make_shared<World>();
  world->size = world->joined = size;
  world->name = comm.world->name + numbered(".", comm.splits) + numbered(".", static_cast<std::size_t>(color));
  tell(*world, "join", rank, "");
  return new ncclComm{world, rank, size, 0, {}, {}, 0, nullptr};
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = FAKE_NCCL_VERSION;
  return ncclSuccess;
}

// Carries the version, so that a test sees which library a pointer leads into.
const char* ncclGetErrorString(ncclResult_t) {
  return "fake NCCL " FAKE_NCCL_NAME;
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard<std::mutex> lock(worldsMutex);
  std::memset(id, 0, sizeof *id);
  const long key = static_cast<long>(getpid()) << 32 | nextId++;
  std::memcpy(id->internal, &key, sizeof key);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t*) {
  const std::lock_guard<std::mutex> lock(worldsMutex);
  long key = 0;
  std::memcpy(&key, id.internal, sizeof key);
  auto& world = worlds[key];
  if (!world) world = std::make_shared<World>();
  world->name = std::to_string(key);
  world->size = size;
  world->joined++;
  tell(*world, "join", rank, "");
  *comm = new ncclComm{world, rank, size, 0, {}, {}, 0, nullptr};
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard<std::mutex> lock(worldsMutex);
  *state = isDone(*comm) ? ncclSuccess : ncclInProgress;
  if (*state == ncclSuccess) {
    for (const auto& [place, window] : std::exchange(comm->promised, {})) *place = window;
    if (ncclComm_t* place = std::exchange(comm->child, nullptr)) *place = childOf(*comm);
  }
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t*) {
  if (nccl_ext::fake::fails("split", comm->rank)) return ncclSystemError;
  const std::lock_guard<std::mutex> lock(worldsMutex);
  auto& splits = comm->world->splits;
  if (splits.size() <= comm->splits) splits.resize(comm->splits + 1);
  tell(*comm->world, numbered("split", comm->splits), comm->rank, std::to_string(color) + " " + std::to_string(key));
  splits[comm->splits++].asked[comm->rank] = {color, key};
  comm->child = child;
  return ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const std::lock_guard<std::mutex> lock(worldsMutex);
  return isDone(*comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  while (comm->held.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (const ncclWindow_t window : comm->open) delete window;
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int) {
  const std::shared_ptr<Mail> mail = comm->world->mail;
  const std::lock_guard<std::mutex> lock(mail->mutex);
  comm->aborted->store(true);
  mail->changed.notify_all();
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  (void)ncclCommRevoke(comm, 0);
  return ncclCommDestroy(comm);
}

ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t* properties) {
  properties->rank = comm->rank;
  properties->nRanks = comm->size;
  properties->deviceApiSupport = true;
  properties->nLsaTeams = 1;
  properties->ginType = properties->railedGinType = NCCL_GIN_TYPE_NONE;
  properties->multimemSupport = properties->hostRmaSupport = false;
  return ncclSuccess;
}

}  // extern "C"

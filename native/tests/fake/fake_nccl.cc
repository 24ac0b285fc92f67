// SPDX-License-Identifier: Apache-2.0
// A libnccl.so.2 whose ranks are threads of one process, or of several (fake_nccl_processes.hpp), and whose device memory is
// host memory. Variants by macro: FAKE_NCCL_VERSION, and FAKE_NCCL_INCOMPLETE, which lacks a function.
//
// It is non-blocking as the real one: collective calls go on, as ncclCommGetAsyncError says, until every rank has made
// them. ncclCommWindowRegister answers ncclSuccess and writes the handle later.
#include <nccl.h>
#include <nccl_device/core.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/wait.hpp"
#include "tests/fake/fake_driver.hpp"
#include "tests/fake/fake_nccl_processes.hpp"
#include "tests/fake/fake_stream.hpp"

// The loader looks for this text in the file to learn the CUDA major.
__attribute__((used)) static const char fakeNcclBanner[] = "NCCL version 2.30.7+cuda" FAKE_NCCL_CUDA ".0";

namespace {

struct FakeWorld;

// What ranks ask for in one split: (color, key) by rank, and the worlds that come of it by color.
struct FakeSplit {
  std::map<int, std::pair<int, int>> asked;
  std::map<int, std::shared_ptr<FakeWorld>> made;
};

// Bytes that a rank offers another one; taken in order.
struct FakeOffer {
  const void* data = nullptr;
  std::size_t bytes = 0;
  bool taken = false;
};

// What the groups on streams do: bytes by (sender, receiver).
struct FakeMail {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<FakeOffer>>> offers;
};

struct FakeWorld {
  std::string name;  // the same in all processes
  int size = 0;
  int joined = 0;
  std::shared_ptr<FakeMail> mail = std::make_shared<FakeMail>();
  std::vector<std::map<int, void*>> windows;  // by number: address by rank
  std::vector<FakeSplit> splits;              // by number
};

std::mutex mutex;
std::map<long, std::shared_ptr<FakeWorld>> worlds;
long nextId = 1;

}  // namespace

struct ncclWindow_vidmem {
  std::shared_ptr<FakeWorld> world;
  std::size_t number = 0;
};

struct ncclComm {
  std::shared_ptr<FakeWorld> world;
  int rank = 0;
  int size = 0;
  int windows = 0;              // registered so far
  std::set<ncclWindow_t> open;  // a communicator that is aborted takes its windows along
  std::vector<std::pair<ncclWindow_t*, ncclWindow_t>> promised;  // where a handle goes once every rank has registered
  std::size_t splits = 0;                                        // asked for so far
  ncclComm_t* child = nullptr;                                   // where that of the last one goes
  std::shared_ptr<std::atomic<bool>> aborted = std::make_shared<std::atomic<bool>>(false);
  bool connected = false;                                // its first group takes FAKE_NCCL_CONNECT_MS
  std::shared_ptr<int> held = std::make_shared<int>(0);  // by the groups in graphs: it ends after them, as the real one
};

namespace {

std::string numbered(const char* what, std::size_t number) {
  return what + std::to_string(number);
}

// Takes note of what ranks of other processes have done meanwhile.
void hear(FakeWorld& world) {
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

void tell(const FakeWorld& world, const std::string& what, int rank, const std::string& line) {
  if (nccl_ext::fake::spread()) nccl_ext::fake::tell(world.name, what, rank, line);
}

struct FakePart {
  ncclComm_t comm;
  cudaStream_t stream;
  bool sends;
  int peer;
  void* data;
  std::size_t bytes;
};
thread_local std::vector<FakePart> group;

// One rank's group, as its kernel: everything is offered, then everything is taken; it has ended when its own bytes are
// taken too, or when its communicator is aborted.
struct FakeExchange {
  std::shared_ptr<FakeMail> mail;
  std::shared_ptr<std::atomic<bool>> aborted;
  int rank;
  std::vector<FakePart> parts;
  std::shared_ptr<int> graph;  // none outside of graphs

  void operator()() const {
    std::unique_lock<std::mutex> lock(mail->mutex);
    std::vector<std::pair<int, std::shared_ptr<FakeOffer>>> own;
    for (const FakePart& part : parts) {
      if (!part.sends) continue;
      own.emplace_back(part.peer, std::make_shared<FakeOffer>(FakeOffer{part.data, part.bytes}));
      mail->offers[{rank, part.peer}].push_back(own.back().second);
    }
    mail->changed.notify_all();
    for (const FakePart& part : parts) {
      if (part.sends || !await(lock, [&] { return !mail->offers[{part.peer, rank}].empty(); })) continue;
      auto& offers = mail->offers[{part.peer, rank}];
      FakeOffer& offer = *offers.front();
      // As the real one, it does not compare sizes; the fake must not write beyond.
      std::memcpy(part.data, offer.data, offer.bytes < part.bytes ? offer.bytes : part.bytes);
      offer.taken = true;
      offers.pop_front();
      mail->changed.notify_all();
    }
    await(lock, [&] {
      for (const auto& [peer, offer] : own) {
        if (!offer->taken) return false;
      }
      return true;
    });
    for (const auto& [peer, offer] : own) {
      auto& offers = mail->offers[{rank, peer}];
      if (!offer->taken) offers.erase(std::find(offers.begin(), offers.end(), offer));
    }
  }

  template <class Predicate>
  bool await(std::unique_lock<std::mutex>& lock, Predicate holds) const {
    nccl_ext::waitUntilTrue(mail->changed, lock, [&] { return aborted->load() || holds(); });
    return !aborted->load();
  }
};

ncclResult_t add(const FakePart& part) {
  group.push_back(part);
  return ncclSuccess;
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
  FakeSplit& split = comm.world->splits[comm.splits - 1];
  const auto [color, key] = split.asked[comm.rank];
  if (color == NCCL_SPLIT_NOCOLOR) return nullptr;
  int rank = 0, size = 0;
  for (const auto& [peer, ask] : split.asked) {
    if (ask.first != color) continue;
    size++;
    rank += std::make_pair(ask.second, peer) < std::make_pair(key, comm.rank) ? 1 : 0;
  }
  auto& world = split.made[color];
  if (!world) world = std::make_shared<FakeWorld>();
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
  const std::lock_guard<std::mutex> lock(mutex);
  std::memset(id, 0, sizeof *id);
  const long key = static_cast<long>(getpid()) << 32 | nextId++;
  std::memcpy(id->internal, &key, sizeof key);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t*) {
  const std::lock_guard<std::mutex> lock(mutex);
  long key = 0;
  std::memcpy(&key, id.internal, sizeof key);
  auto& world = worlds[key];
  if (!world) world = std::make_shared<FakeWorld>();
  world->name = std::to_string(key);
  world->size = size;
  world->joined++;
  tell(*world, "join", rank, "");
  *comm = new ncclComm{world, rank, size, 0, {}, {}, 0, nullptr};
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard<std::mutex> lock(mutex);
  *state = isDone(*comm) ? ncclSuccess : ncclInProgress;
  if (*state == ncclSuccess) {
    for (const auto& [place, window] : std::exchange(comm->promised, {})) *place = window;
    if (ncclComm_t* place = std::exchange(comm->child, nullptr)) *place = childOf(*comm);
  }
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t*) {
  const std::lock_guard<std::mutex> lock(mutex);
  auto& splits = comm->world->splits;
  if (splits.size() <= comm->splits) splits.resize(comm->splits + 1);
  tell(*comm->world, numbered("split", comm->splits), comm->rank, std::to_string(color) + " " + std::to_string(key));
  splits[comm->splits++].asked[comm->rank] = {color, key};
  comm->child = child;
  return ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const std::lock_guard<std::mutex> lock(mutex);
  return isDone(*comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  while (comm->held.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (const ncclWindow_t window : comm->open) delete window;
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int) {
  const std::shared_ptr<FakeMail> mail = comm->world->mail;
  const std::lock_guard<std::mutex> lock(mail->mutex);
  comm->aborted->store(true);
  mail->changed.notify_all();
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  (void)ncclCommRevoke(comm, 0);
  return ncclCommDestroy(comm);
}

ncclResult_t ncclGroupStart() {
  group.clear();
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add({comm, stream, true, peer, const_cast<void*>(data), count});
}

ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm, cudaStream_t stream) {
  return add({comm, stream, false, peer, data, count});
}

// A group of one communicator and stream; counts are bytes.
ncclResult_t ncclGroupEnd() {
  const std::vector<FakePart> parts = std::exchange(group, {});
  if (parts.empty()) return ncclSuccess;
  const auto [comm, stream] = std::make_pair(parts[0].comm, parts[0].stream);
  auto* front = reinterpret_cast<nccl_ext::fake::StreamFront*>(stream);
  const char* delay = std::getenv("FAKE_NCCL_CONNECT_MS");
  if (!std::exchange(comm->connected, true) && delay != nullptr)
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(delay)));
  const auto graph = front->recording == nullptr ? nullptr : comm->held;
  (void)front->launch(stream, FakeExchange{comm->world->mail, comm->aborted, comm->rank, parts, graph});
  return ncclSuccess;
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

ncclResult_t ncclMemAlloc(void** address, std::size_t bytes) {
  if (bytes > (std::size_t{1} << 40)) return ncclUnhandledCudaError;
  const nccl_ext::fake::Driver& driver = nccl_ext::fake::driver();
  *address = driver.allocate(nccl_ext::fake::Memory::kVirtual, driver.current(), bytes, 1);
  return ncclSuccess;
}

ncclResult_t ncclMemFree(void* address) {
  nccl_ext::fake::driver().release(address);
  return ncclSuccess;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* address, std::size_t bytes, ncclWindow_t* window, int) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto number = static_cast<std::size_t>(comm->windows++);
  if (comm->world->windows.size() <= number) comm->world->windows.resize(number + 1);
  comm->world->windows[number][comm->rank] = address;
  if (nccl_ext::fake::spread())
    tell(*comm->world, numbered("window", number), comm->rank, nccl_ext::fake::placeOf(address, bytes));
  const auto made = new ncclWindow_vidmem{comm->world, number};
  comm->open.insert(made);
  comm->promised.emplace_back(window, made);
  return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  comm->open.erase(window);
  delete window;
  return ncclSuccess;
}

#ifndef FAKE_NCCL_INCOMPLETE
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, std::size_t offset, int peer, void** address) {
  const std::lock_guard<std::mutex> lock(mutex);
  *address = static_cast<char*>(window->world->windows[window->number][peer]) + offset;
  return ncclSuccess;
}
#endif

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// What stands behind the communicators and windows of the fake NCCL: worlds, which the ranks of this process share.
#pragma once

#include <nccl.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace nccl_ext::fake {

struct World;

// What ranks ask for in one split: (color, key) by rank, and the worlds that come of it by color.
struct Split {
  std::map<int, std::pair<int, int>> asked;
  std::map<int, std::shared_ptr<World>> made;
};

// Bytes that a rank offers another one; taken in order.
struct Offer {
  const void* data = nullptr;
  std::size_t bytes = 0;
  bool taken = false;
};

// What the groups on streams do: bytes by (sender, receiver).
struct Mail {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Offer>>> offers;
};

struct World {
  std::string name;  // the same in all processes
  int size = 0;
  int joined = 0;
  std::shared_ptr<Mail> mail = std::make_shared<Mail>();
  std::vector<std::map<int, void*>> windows;  // by number: address by rank
  std::vector<Split> splits;                  // by number
};

// Several fakes may be loaded at once, and each has its own of what follows.
#pragma GCC visibility push(hidden)

// Of all worlds, but not of their mail.
extern std::mutex worldsMutex;

// `what` with a number.
std::string numbered(const char* what, std::size_t number);

// Whether FAKE_NCCL_FAILS names the call and the rank: "register 1", "connect 0", "split 2".
bool fails(const char* call, int rank);

// Tells ranks of other processes that `rank` has done `what`, where there are any.
void tell(const World& world, const std::string& what, int rank, const std::string& line);

#pragma GCC visibility pop

}  // namespace nccl_ext::fake

struct ncclWindow_vidmem {
  std::shared_ptr<nccl_ext::fake::World> world;
  std::size_t number = 0;
};

struct ncclComm {
  std::shared_ptr<nccl_ext::fake::World> world;
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

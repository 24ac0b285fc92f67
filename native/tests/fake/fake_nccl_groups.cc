// SPDX-License-Identifier: Apache-2.0
// The fake NCCL's groups of sends and receives, as one kernel of a stream or a graph each.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "runtime/wait.hpp"
#include "tests/fake/fake_nccl_world.hpp"
#include "tests/fake/fake_stream.hpp"

using nccl_ext::fake::Mail;
using nccl_ext::fake::Offer;

namespace {

struct Part {
  ncclComm_t comm;
  cudaStream_t stream;
  bool sends;
  int peer;
  void* data;
  std::size_t bytes;
};
thread_local std::vector<Part> group;

// One rank's group, as its kernel: everything is offered, then everything is taken; it has ended when its own bytes are
// taken too, or when its communicator is aborted.
struct Exchange {
  std::shared_ptr<Mail> mail;
  std::shared_ptr<std::atomic<bool>> aborted;
  int rank;
  std::vector<Part> parts;
  std::shared_ptr<int> graph;  // none outside of graphs

  void operator()() const {
    std::unique_lock<std::mutex> lock(mail->mutex);
    std::vector<std::pair<int, std::shared_ptr<Offer>>> own;
    for (const Part& part : parts) {
      if (!part.sends) continue;
      own.emplace_back(part.peer, std::make_shared<Offer>(Offer{part.data, part.bytes}));
      mail->offers[{rank, part.peer}].push_back(own.back().second);
    }
    mail->changed.notify_all();
    for (const Part& part : parts) {
      if (part.sends || !await(lock, [&] { return !mail->offers[{part.peer, rank}].empty(); })) continue;
      auto& offers = mail->offers[{part.peer, rank}];
      Offer& offer = *offers.front();
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

ncclResult_t add(const Part& part) {
  group.push_back(part);
  return ncclSuccess;
}

}  // namespace

extern "C" {

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
  const std::vector<Part> parts = std::exchange(group, {});
  if (parts.empty()) return ncclSuccess;
  const auto [comm, stream] = std::make_pair(parts[0].comm, parts[0].stream);
  if (!comm->connected && nccl_ext::fake::fails("connect", comm->rank)) return ncclSystemError;
  auto* front = reinterpret_cast<nccl_ext::fake::StreamFront*>(stream);
  const char* delay = std::getenv("FAKE_NCCL_CONNECT_MS");
  if (!std::exchange(comm->connected, true) && delay != nullptr)
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(delay)));
  const auto graph = front->recording == nullptr ? nullptr : comm->held;
  (void)front->launch(stream, Exchange{comm->world->mail, comm->aborted, comm->rank, parts, graph});
  return ncclSuccess;
}

}  // extern "C"

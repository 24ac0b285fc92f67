// SPDX-License-Identifier: Apache-2.0
// One rank's NCCL communicator, non-blocking so that every wait has a deadline and can be stopped.
//
// R1 All calls come from one thread, the rank's worker; only the stop flag is shared.
// R2 NCCL goes on by itself after a call; settle() asks until it is done. What the call answered says only that it
//    began: ncclCommWindowRegister of 2.30.7 answers ncclSuccess while its window is still in the making.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <memory>

#include "nccl/api.hpp"
#include "runtime/error.hpp"

namespace nccl_ext {

class Comm {
 public:
  using Clock = std::chrono::steady_clock;

  // `stop`: once true, waits end with ERR_ABORTED. `api` and `stop` outlive the communicator.
  Comm(const NcclApi& api, const std::atomic<bool>& stop) : api_(api), stop_(stop) {}
  // Aborts what was not closed.
  ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  // Collective. The rank's device is current. ERR_TIMEOUT when the others do not come by `deadline`.
  Status open(const ncclUniqueId& id, int rank, int size, Clock::time_point deadline);
  const ncclCommProperties& properties() const { return properties_; }
  // Collective over all ranks of this one. Ranks of one `color` get a communicator, ordered by `key`, that knows nothing
  // of this one afterwards; NCCL_SPLIT_NOCOLOR takes part and gets null. `stop` is the new one's.
  Outcome<std::unique_ptr<Comm>> split(int color, int key, const std::atomic<bool>& stop, Clock::time_point deadline);

  // The same as NCCL has it, made by `config`; null for NCCL_SPLIT_NOCOLOR. It is the caller's. `stopped` ends the wait as
  // `stop` does.
  Outcome<ncclComm_t> split(int color, int key, ncclConfig_t config, Clock::time_point deadline,
                            const std::function<bool()>& stopped = nullptr);

  // Collective over the same order of windows on all ranks. `address` is memory of ncclMemAlloc.
  Outcome<ncclWindow_t> registerWindow(void* address, std::size_t bytes, Clock::time_point deadline);
  Status deregisterWindow(ncclWindow_t window, Clock::time_point deadline);
  // Where this rank reaches `peer`'s part of a window; null when only a network does.
  void* peerAddress(ncclWindow_t window, int peer) const;

  // Ends the communicator and the windows that are left, the youngest first; `broken` ends it without its peers.
  Status close(bool broken, Clock::time_point deadline);

 private:
  Status settle(ncclResult_t result, const char* op, Clock::time_point deadline,
                const std::function<bool()>& stopped = nullptr);

  const NcclApi& api_;
  const std::atomic<bool>& stop_;
  ncclComm_t comm_ = nullptr;
  // NCCL writes the handles of windows and of children when it is done, which may be after we gave up waiting: slots
  // stay in place. A slot goes with its window, or when its child is handed out.
  std::list<ncclWindow_t> windows_;
  std::list<ncclComm_t> children_;
  ncclCommProperties properties_ = NCCL_COMM_PROPERTIES_INITIALIZER;
  int rank_ = -1;
};

// The record of an NCCL call that failed, with NCCL's own last words.
Failure ncclFailure(const NcclApi& api, ncclComm_t comm, ncclResult_t result, const std::string& op);

}  // namespace nccl_ext

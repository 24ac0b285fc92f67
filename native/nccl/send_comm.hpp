// SPDX-License-Identifier: Apache-2.0
// The communicator by which ranks send what they cannot write into each other's memory. Blocking, so that whatever a call
// launched is on its stream when it returns.
//
// R1 Kernels of NCCL have no deadline: abort() ends them, from any thread and without waiting.
// R2 `using_` is held while a call is in NCCL. Only one that connects ranks takes long; abort() then interrupts it by
//    ncclCommRevoke before it takes the communicator away.
// R3 NCCL ends a communicator only when the graphs that hold groups of it are gone: whoever closes it drops them first.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "nccl/comm.hpp"

namespace nccl_ext {

// Bytes that go to a peer, or come from it.
struct Sending {
  int peer = 0;
  bool sends = false;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

class SendComm {
 public:
  using Clock = Comm::Clock;

  SendComm() = default;
  ~SendComm();
  SendComm(const SendComm&) = delete;
  SendComm& operator=(const SendComm&) = delete;

  // Collective over the ranks of `parent`, whose worker this is; once. `ctas`: of its kernels at most. ERR_TIMEOUT;
  // ERR_ABORTED once `stopped`.
  Status open(const NcclApi& api, Comm& parent, int rank, int ctas, Clock::time_point deadline,
              const std::function<bool()>& stopped);
  bool isOpen() const;

  // Puts one group on the stream. The peers' groups must match it, in the same order on every rank. It waits for peers
  // only the first time that a pair meets.
  Status exchange(const std::vector<Sending>& group, cudaStream_t stream, const char* op);

  // Ends what runs and refuses what comes.
  void abort();

  // `broken`: without the peers. ERR_TIMEOUT when they do not come.
  Status close(bool broken, Clock::time_point deadline);

 private:
  Failure refused(const char* op) const;
  void endAborted();

  const NcclApi* api_ = nullptr;
  int rank_ = -1;
  mutable std::mutex mutex_;  // of what follows; never held in NCCL
  ncclComm_t comm_ = nullptr;
  bool aborted_ = false;
  std::thread aborter_;
  std::mutex using_;
};

}  // namespace nccl_ext

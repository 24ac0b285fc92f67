// SPDX-License-Identifier: Apache-2.0
#include "nccl/send_comm.hpp"

#include <condition_variable>
#include <memory>
#include <utility>

namespace nccl_ext {

SendComm::~SendComm() {
  (void)close(true, Clock::now());
}

Status SendComm::open(const NcclApi& api, Comm& parent, int rank, int ctas, Clock::time_point deadline,
                      const std::function<bool()>& stopped) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.maxCTAs = ctas;
  Outcome<ncclComm_t> made = parent.split(0, rank, config, deadline, stopped);
  if (!made) return made.error();
  // The parent tells that the split is done; the child has a state of its own.
  ncclResult_t state = ncclInProgress;
  ncclResult_t asked = ncclSuccess;
  bool ended = false;
  while (asked == ncclSuccess && state == ncclInProgress) {
    asked = api.ncclCommGetAsyncError(made.value(), &state);
    if (asked == ncclSuccess && state == ncclInProgress) std::this_thread::sleep_for(std::chrono::microseconds(100));
    ended = stopped();
    if (ended || Clock::now() >= deadline) break;
  }
  if (asked != ncclSuccess || state != ncclSuccess) {
    ErrorRecord error = ncclFailure(api, made.value(), asked != ncclSuccess ? asked : state, "split").ofRank(rank);
    if (asked == ncclSuccess && state == ncclInProgress) {
      error.code = ended ? ErrorCode::kAborted : ErrorCode::kTimeout;
      error.detail = ended ? "split was stopped"
                           : "NCCL did not make the communicator of transfers in time; a rank may be missing";
    }
    (void)api.ncclCommAbort(made.value());
    return error;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  api_ = &api;
  rank_ = rank;
  comm_ = made.value();
  if (!aborted_) return ok();
  aborter_ = std::thread([this] { endAborted(); });
  return refused("split");
}

bool SendComm::isOpen() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return comm_ != nullptr;
}

Status SendComm::exchange(const std::vector<Sending>& group, cudaStream_t stream, const char* op) {
  {
    // Ending takes `using_` for as long as NCCL needs.
    const std::lock_guard<std::mutex> lock(mutex_);
    if (aborted_) return refused(op);
  }
  const std::lock_guard<std::mutex> use(using_);
  ncclComm_t comm = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (aborted_ || comm_ == nullptr) return refused(op);
    comm = comm_;
  }
  ncclResult_t result = api_->ncclGroupStart();
  if (result != ncclSuccess) return ncclFailure(*api_, comm, result, op).ofRank(rank_);
  for (const Sending& one : group) {
    void* const address = reinterpret_cast<void*>(static_cast<std::uintptr_t>(one.address));
    const auto bytes = static_cast<std::size_t>(one.bytes);
    if (result != ncclSuccess) break;
    result = one.sends ? api_->ncclSend(address, bytes, ncclUint8, one.peer, comm, stream)
                       : api_->ncclRecv(address, bytes, ncclUint8, one.peer, comm, stream);
  }
  const ncclResult_t ended = api_->ncclGroupEnd();
  if (result == ncclSuccess) result = ended;
  if (result == ncclSuccess) return ok();
  const std::lock_guard<std::mutex> lock(mutex_);
  return aborted_ ? refused(op) : ncclFailure(*api_, comm, result, op).ofRank(rank_);
}

void SendComm::abort() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::exchange(aborted_, true) || comm_ == nullptr) return;
  aborter_ = std::thread([this] { endAborted(); });
}

void SendComm::endAborted() {
  std::unique_lock<std::mutex> use(using_, std::try_to_lock);
  if (!use) {
    ncclComm_t comm = nullptr;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      comm = comm_;
    }
    (void)api_->ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT);
    use.lock();
  }
  ncclComm_t comm = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    comm = std::exchange(comm_, nullptr);
  }
  if (comm != nullptr) (void)api_->ncclCommAbort(comm);
}

Status SendComm::close(bool broken, Clock::time_point deadline) {
  std::thread aborter;
  ncclComm_t comm = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    aborter = std::move(aborter_);
    if (!aborted_) comm = std::exchange(comm_, nullptr);
    aborted_ = true;
  }
  if (aborter.joinable()) aborter.join();
  if (comm == nullptr) return ok();
  if (broken) {
    (void)api_->ncclCommAbort(comm);
    return ok();
  }
  // A blocking communicator waits for its peers without a deadline; this thread must not.
  struct Ending {
    std::mutex mutex;
    std::condition_variable ended;
    bool done = false;
    ncclResult_t result = ncclSuccess;
  };
  const auto ending = std::make_shared<Ending>();
  std::thread closer([api = api_, comm, ending] {
    ncclResult_t result = api->ncclCommFinalize(comm);
    const ncclResult_t destroyed = api->ncclCommDestroy(comm);
    if (result == ncclSuccess) result = destroyed;
    const std::lock_guard<std::mutex> lock(ending->mutex);
    ending->result = result;
    ending->done = true;
    ending->ended.notify_one();
  });
  std::unique_lock<std::mutex> lock(ending->mutex);
  if (!ending->ended.wait_until(lock, deadline, [&] { return ending->done; })) {
    closer.detach();
    return fail(ErrorCode::kTimeout, "dispose", "NCCL did not end the communicator of transfers in time").ofRank(rank_);
  }
  lock.unlock();
  closer.join();
  if (ending->result == ncclSuccess || ending->result == ncclInProgress) return ok();
  return ncclFailure(*api_, nullptr, ending->result, "dispose").ofRank(rank_);
}

Failure SendComm::refused(const char* op) const {
  return fail(ErrorCode::kAborted, op, "the communicator of transfers has ended").ofRank(rank_);
}

}  // namespace nccl_ext

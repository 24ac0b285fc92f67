// SPDX-License-Identifier: Apache-2.0
#include "nccl/comm.hpp"

#include <thread>
#include <utility>

namespace nccl_ext {
namespace {

constexpr std::chrono::microseconds kPollEvery{100};

}  // namespace

Failure ncclFailure(const NcclApi& api, ncclComm_t comm, ncclResult_t result, const std::string& op) {
  const char* last = api.ncclGetLastError(comm);
  const std::string words = last == nullptr || *last == '\0' ? "" : std::string(": ") + last;
  return fail(ErrorCode::kInternal, op, "NCCL reports " + std::string(api.ncclGetErrorString(result)) + words)
      .helped("Run with NCCL_DEBUG=WARN to see where.");
}

Comm::~Comm() {
  if (comm_ != nullptr) (void)api_.ncclCommAbort(comm_);
}

Status Comm::open(const ncclUniqueId& id, int rank, int size, Clock::time_point deadline) {
  rank_ = rank;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const Status opened = settle(api_.ncclCommInitRankConfig(&comm_, size, id, rank, &config), "init", deadline);
  if (!opened) return opened;
  return settle(api_.ncclCommQueryProperties(comm_, &properties_), "init", deadline);
}

Outcome<ncclComm_t> Comm::split(int color, int key, ncclConfig_t config, Clock::time_point deadline,
                                const std::function<bool()>& stopped) {
  const auto slot = children_.insert(children_.end(), nullptr);
  // The parent tells how far the split is; until then the child is null.
  const Status split = settle(api_.ncclCommSplit(comm_, color, key, &*slot, &config), "split", deadline, stopped);
  if (!split) return split.error();
  const ncclComm_t made = *slot;
  children_.erase(slot);
  if (color != NCCL_SPLIT_NOCOLOR && made == nullptr)
    return fail(ErrorCode::kInternal, "split", "NCCL made no communicator").ofRank(rank_);
  return made;
}

Outcome<std::unique_ptr<Comm>> Comm::split(int color, int key, const std::atomic<bool>& stop,
                                           Clock::time_point deadline) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const Outcome<ncclComm_t> made = split(color, key, config, deadline);
  if (!made) return made.error();
  if (made.value() == nullptr) return std::unique_ptr<Comm>();
  auto child = std::make_unique<Comm>(api_, stop);
  child->comm_ = made.value();
  child->rank_ = key;
  if (const Status opened = child->settle(ncclSuccess, "split", deadline); !opened) return opened.error();
  const Status asked =
      child->settle(api_.ncclCommQueryProperties(child->comm_, &child->properties_), "split", deadline);
  if (!asked) return asked.error();
  return child;
}

Outcome<ncclWindow_t> Comm::registerWindow(void* address, std::size_t bytes, Clock::time_point deadline) {
  const auto slot = windows_.insert(windows_.end(), nullptr);
  const ncclResult_t result = api_.ncclCommWindowRegister(comm_, address, bytes, &*slot, NCCL_WIN_COLL_SYMMETRIC);
  const Status registered = settle(result, "registerWindow", deadline);
  if (!registered) return registered.error();
  if (*slot == nullptr) {
    windows_.erase(slot);
    return fail(ErrorCode::kUnsupported, "registerWindow", "NCCL cannot make windows on these GPUs").ofRank(rank_);
  }
  return *slot;
}

Status Comm::deregisterWindow(ncclWindow_t window, Clock::time_point deadline) {
  windows_.remove(window);
  return settle(api_.ncclCommWindowDeregister(comm_, window), "freeWindow", deadline);
}

void* Comm::peerAddress(ncclWindow_t window, int peer) const {
  void* address = nullptr;
  return api_.ncclGetPeerDevicePointer(window, 0, peer, &address) == ncclSuccess ? address : nullptr;
}

Status Comm::close(bool broken, Clock::time_point deadline) {
  if (comm_ == nullptr) return ok();
  Status closed = ok();
  while (!broken && closed && !windows_.empty()) {
    const ncclWindow_t youngest = windows_.back();
    if (youngest == nullptr)
      windows_.pop_back();
    else
      closed = deregisterWindow(youngest, deadline);
  }
  if (!broken && closed) closed = settle(api_.ncclCommFinalize(comm_), "dispose", deadline);
  const ncclComm_t comm = std::exchange(comm_, nullptr);
  const ncclResult_t result = broken || !closed ? api_.ncclCommAbort(comm) : api_.ncclCommDestroy(comm);
  if (closed && result != ncclSuccess && result != ncclInProgress)
    return ncclFailure(api_, nullptr, result, "dispose").ofRank(rank_);
  return closed;
}

Status Comm::settle(ncclResult_t result, const char* op, Clock::time_point deadline,
                    const std::function<bool()>& stopped) {
  const auto pending = [](ncclResult_t state) { return state == ncclSuccess || state == ncclInProgress; };
  while (pending(result)) {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = api_.ncclCommGetAsyncError(comm_, &state);
    result = asked == ncclSuccess ? state : asked;
    if (result == ncclSuccess) return ok();
    if (result != ncclInProgress) break;
    if (stop_.load() || (stopped && stopped()))
      return fail(ErrorCode::kAborted, op, std::string(op) + " was stopped").ofRank(rank_);
    if (Clock::now() >= deadline) {
      return fail(ErrorCode::kTimeout, op, "NCCL did not finish " + std::string(op) + " in time; a rank may be missing")
          .ofRank(rank_)
          .helped("Run with NCCL_DEBUG=INFO to see which rank is missing, or raise the timeout.");
    }
    std::this_thread::sleep_for(kPollEvery);
  }
  return ncclFailure(api_, comm_, result, op).ofRank(rank_);
}

}  // namespace nccl_ext

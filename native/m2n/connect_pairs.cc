// SPDX-License-Identifier: Apache-2.0
#include "m2n/connect_pairs.hpp"

#include <condition_variable>
#include <set>
#include <thread>

#include "m2n/prepare_part.hpp"
#include "runtime/cuda_error.hpp"
#include "runtime/verdict.hpp"

namespace nccl_ext {
namespace {

// NCCL connects ranks for the first time, which takes long, however short a wait's deadline is.
constexpr Timeout kLeastConnect{30'000};
constexpr std::chrono::microseconds kPollEvery{50};
constexpr std::chrono::milliseconds kLookEvery{20};

// Whether the rank was stopped, or a peer of it was lost.
bool isStopped(const RankState& rank) {
  return rank.stop || peek<kSystem>(rank.cells->words().stop) != 0;
}

// Ends the communicator at a deadline, or when the rank or a peer of this process was stopped, whatever NCCL waits for then.
class AbortAt {
 public:
  AbortAt(RankState& rank, Clock::time_point deadline)
      : thread_([this, &rank, deadline] {
          std::unique_lock<std::mutex> lock(mutex_);
          while (!over_.wait_for(lock, kLookEvery, [this] { return done_; })) {
            if (isStopped(rank) || Clock::now() >= deadline) return rank.sends.abort();
          }
        }) {}
  ~AbortAt() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      done_ = true;
    }
    over_.notify_one();
    thread_.join();
  }
  AbortAt(const AbortAt&) = delete;
  AbortAt& operator=(const AbortAt&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;
};

// A byte to and from every peer, through staging.
std::vector<Sending> greetings(const DeviceProgram& program) {
  std::set<std::pair<int, bool>> greeted;
  std::vector<Sending> group;
  for (const auto& rounds : program.rounds) {
    for (const SentRound& round : rounds) {
      for (Sending one : round.group) {
        one.bytes = 1;
        if (greeted.emplace(one.peer, one.sends).second) group.push_back(one);
      }
    }
  }
  return group;
}

Status finished(cudaStream_t stream, const RankState& rank) {
  cudaEvent_t raw = nullptr;
  cudaError_t result = cudaEventCreateWithFlags(&raw, cudaEventDisableTiming);
  const CudaEvent event(raw);
  if (result == cudaSuccess) result = cudaEventRecord(raw, stream);
  if (result == cudaSuccess) {
    while ((result = cudaEventQuery(raw)) == cudaErrorNotReady) {
      (void)cudaGetLastError();
      std::this_thread::sleep_for(kPollEvery);
    }
  }
  if (result == cudaSuccess) return ok();
  return cudaFailure(result, kPrepareOp, "connecting pairs of ranks").ofRank(rank.rank);
}

}  // namespace

Clock::time_point connectDeadline(const RankState& rank) {
  return Clock::now() + std::max(rank.world->timeout, kLeastConnect);
}

OpenedSends openSends(RankState& rank) {
  if (rank.sends.isOpen()) return {};
  const DeviceGuard guard(rank.device);
  const auto deadline = connectDeadline(rank);
  const Status opened = rank.sends.open(*rank.world->api, *rank.comm, rank.rank, rank.smBudget, deadline,
                                        [&rank] { return isStopped(rank); });
  const ErrorCode code = opened ? ErrorCode::kNone : opened.error().code;
  // Those that NCCL lets wait for it come to no meeting; after a timeout they do, and know why one was stopped.
  if (!opened && code != ErrorCode::kAborted && code != ErrorCode::kTimeout) return {opened, true};
  const std::optional<ErrorRecord> problem = opened ? std::nullopt : std::optional<ErrorRecord>(opened.error());
  const Outcome<std::vector<Bytes>> all = rank.world->meeting->gather(
      rank.rank, {kPrepareOp, "transfer communicator", verdictOf(problem)}, deadline + rank.world->timeout);
  if (!all) return {all.error()};
  const auto refused = refusalOf(kPrepareOp, all.value(), problem, rank.rank);
  if (refused) (void)rank.sends.close(true, Clock::now());
  return {refused ? Status(*refused) : ok()};
}

Status connectPairs(RankState& rank, const DeviceProgram& program, Clock::time_point deadline) {
  const std::vector<Sending> group = greetings(program);
  if (group.empty()) return ok();
  const DeviceGuard guard(rank.device);
  cudaStream_t raw = nullptr;
  const cudaError_t made = cudaStreamCreateWithFlags(&raw, cudaStreamNonBlocking);
  if (made != cudaSuccess) return cudaFailure(made, kPrepareOp, "a stream").ofRank(rank.rank);
  const CudaStream stream(raw);
  Status connected = ok();
  {
    const AbortAt abortAt(rank, deadline);
    connected = rank.sends.exchange(group, raw, kPrepareOp);
    if (connected) connected = finished(raw, rank);
  }
  if (Clock::now() < deadline) return connected;
  return fail(ErrorCode::kTimeout, kPrepareOp, "NCCL did not connect the pairs of ranks in time; a rank may be missing")
      .ofRank(rank.rank)
      .helped("Run with NCCL_DEBUG=INFO to see which rank is missing, or raise the timeout.");
}

}  // namespace nccl_ext

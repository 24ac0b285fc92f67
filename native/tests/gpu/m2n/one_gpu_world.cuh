// SPDX-License-Identifier: Apache-2.0
// Ranks as streams of one process on one GPU, without NCCL and without the runtime: what the transfer kernel alone needs.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "m2n/program_image.hpp"
#include "m2n/transfer.hpp"

#define CHECK_CUDA(call)                                                             \
  do {                                                                               \
    const cudaError_t result = (call);                                               \
    if (result != cudaSuccess) {                                                     \
      std::printf("%s, line %d: %s\n", #call, __LINE__, cudaGetErrorString(result)); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (false)

namespace nccl_ext::test {

// Moves of one rank, by stage.
struct RankMoves {
  std::vector<Move> stages[kTransferStages];
};

template <class Entry>
Entry* upload(const std::vector<Entry>& entries) {
  void* memory = nullptr;
  CHECK_CUDA(cudaMalloc(&memory, std::max<std::size_t>(1, entries.size()) * sizeof(Entry)));
  CHECK_CUDA(cudaMemcpy(memory, entries.data(), entries.size() * sizeof(Entry), cudaMemcpyHostToDevice));
  return static_cast<Entry*>(memory);
}

template <class Record>
Record* pinned() {
  void* memory = nullptr;
  CHECK_CUDA(cudaHostAlloc(&memory, sizeof(Record), cudaHostAllocDefault));
  return new (memory) Record();
}

// A transfer prepared on all ranks.
class World {
 public:
  World(const std::vector<RankMoves>& ranks, const StageLimits& limits, std::uint64_t timeoutNs = 2'000'000'000) {
    const int size = static_cast<int>(ranks.size());
    std::vector<TransferCell*> controls;
    for (int rank = 0; rank < size; rank++)
      controls.push_back(keep(upload(std::vector<TransferCell>(controlCells(size)))));
    TransferCell* const* table = keep(upload(controls));
    for (const RankMoves& rank : ranks) forwards_ = forwards_ || !rank.stages[1].empty();
    for (int rank = 0; rank < size; rank++) {
      ranks_.emplace_back();
      Rank& self = ranks_.back();
      CHECK_CUDA(cudaStreamCreateWithFlags(&self.stream, cudaStreamNonBlocking));
      self.status = pinned<DeviceStatus>();
      self.words = pinned<RankWords>();
      self.counts = pinned<TransferCounts>();
      TransferState* state = keep(upload(std::vector<TransferState>(1)));
      std::vector<std::int32_t> grantees;
      for (int peer = 0; peer < size; peer++) {
        if (peer != rank && (sends(ranks[peer], 0, rank) || sends(ranks[peer], 1, rank))) grantees.push_back(peer);
      }
      for (int stage = 0; stage < kTransferStages; stage++) {
        const StageProgram program = bundleMoves(ranks[rank].stages[stage], limits);
        const ProgramImage image = imageOf(program);
        std::vector<std::int32_t> receivers, senders;
        for (const std::int32_t peer : program.peers) {
          if (peer != rank) receivers.push_back(peer);
        }
        for (int peer = 0; peer < size; peer++) {
          if (peer != rank && sends(ranks[peer], stage, rank)) senders.push_back(peer);
        }
        self.args[stage] = {workAt(image, keep(upload(image.bytes))),
                            table,
                            keep(upload(grantees)),
                            keep(upload(receivers)),
                            keep(upload(senders)),
                            state,
                            self.counts,
                            self.status,
                            self.words,
                            timeoutNs,
                            static_cast<int>(grantees.size()),
                            static_cast<int>(receivers.size()),
                            static_cast<int>(senders.size()),
                            rank,
                            size,
                            stage,
                            stage,  // step
                            1,      // counted
                            0,      // watched
                            stage == (forwards_ ? 1 : 0)};
      }
    }
  }
  World(const World&) = delete;
  ~World() {
    for (Rank& rank : ranks_) {
      cudaStreamDestroy(rank.stream);
      cudaFreeHost(rank.status);
      cudaFreeHost(rank.words);
      cudaFreeHost(rank.counts);
    }
    for (void* memory : memory_) cudaFree(memory);
  }

  int size() const { return static_cast<int>(ranks_.size()); }
  cudaStream_t stream(int rank) const { return ranks_[rank].stream; }
  const TransferCounts& counts(int rank) const { return *ranks_[rank].counts; }
  const DeviceStatus& status(int rank) const { return *ranks_[rank].status; }
  const TransferArgs& args(int rank, int stage = 0) const { return ranks_[rank].args[stage]; }
  int ctas(int rank) const { return ranks_[rank].args[0].work.ctas; }

  void enqueue(int rank, cudaStream_t stream) {
    for (int stage = 0; stage <= (forwards_ ? 1 : 0); stage++)
      CHECK_CUDA(launchTransfer(ranks_[rank].args[stage], stream));
  }
  // One execution on all ranks; false with words about it when a rank reports an error.
  bool run() {
    for (int rank = 0; rank < size(); rank++) enqueue(rank, stream(rank));
    CHECK_CUDA(cudaDeviceSynchronize());
    return quiet();
  }
  bool quiet() const {
    for (int rank = 0; rank < size(); rank++) {
      const DeviceStatus& box = status(rank);
      if (box.code == 0) continue;
      std::printf("rank %d: code %d peer %d expected %llu seen %llu\n", rank, box.code, box.peer,
                  static_cast<unsigned long long>(box.expected), static_cast<unsigned long long>(box.seen));
      return false;
    }
    return true;
  }

 private:
  struct Rank {
    cudaStream_t stream = nullptr;
    DeviceStatus* status = nullptr;
    RankWords* words = nullptr;
    TransferCounts* counts = nullptr;
    TransferArgs args[kTransferStages];
  };

  static bool sends(const RankMoves& rank, int stage, int to) {
    for (const Move& move : rank.stages[stage]) {
      if (move.peer == to && move.inner * move.counts[0] * move.counts[1] * move.counts[2] > 0) return true;
    }
    return false;
  }
  template <class Entry>
  Entry* keep(Entry* memory) {
    memory_.push_back(const_cast<void*>(static_cast<const void*>(memory)));
    return memory;
  }

  std::vector<Rank> ranks_;
  std::vector<void*> memory_;
  bool forwards_ = false;
};

}  // namespace nccl_ext::test

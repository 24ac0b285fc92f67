// SPDX-License-Identifier: Apache-2.0
// How long the measured shapes take, against a copy of as many bytes, by CTAs per source rank.
#pragma once

#include <algorithm>
#include <sstream>

#include "one_gpu_world.cuh"
#include "runtime/moves.hpp"
#include "shapes.hpp"

namespace nccl_ext::test {

class Stopwatch {
 public:
  Stopwatch() {
    CHECK_CUDA(cudaEventCreate(&begin_));
    CHECK_CUDA(cudaEventCreate(&end_));
  }
  ~Stopwatch() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  // Median ms of one of `steps` steps of `work`, on `stream`.
  template <class Work>
  double median(cudaStream_t stream, int steps, Work work) {
    std::vector<float> times;
    for (int repeat = 0; repeat < 6; repeat++) {
      CHECK_CUDA(cudaEventRecord(begin_, stream));
      work();
      CHECK_CUDA(cudaEventRecord(end_, stream));
      CHECK_CUDA(cudaEventSynchronize(end_));
      float ms = 0;
      CHECK_CUDA(cudaEventElapsedTime(&ms, begin_, end_));
      if (repeat > 0) times.push_back(ms / static_cast<float>(steps));
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// `steps` executions on all ranks, forked from and joined to the stream of rank 0.
inline void enqueueSteps(World& world, int steps) {
  cudaEvent_t event;
  CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK_CUDA(cudaEventRecord(event, world.stream(0)));
  for (int rank = 1; rank < world.size(); rank++) CHECK_CUDA(cudaStreamWaitEvent(world.stream(rank), event, 0));
  for (int step = 0; step < steps; step++) {
    for (int rank = 0; rank < world.size(); rank++) world.enqueue(rank, world.stream(rank));
  }
  for (int rank = 1; rank < world.size(); rank++) {
    CHECK_CUDA(cudaEventRecord(event, world.stream(rank)));
    CHECK_CUDA(cudaStreamWaitEvent(world.stream(0), event, 0));
  }
  CHECK_CUDA(cudaEventDestroy(event));
}

inline double graphMs(World& world, Stopwatch& watch, int steps) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK_CUDA(cudaStreamBeginCapture(world.stream(0), cudaStreamCaptureModeThreadLocal));
  enqueueSteps(world, steps);
  CHECK_CUDA(cudaStreamEndCapture(world.stream(0), &graph));
  CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  const double ms = watch.median(world.stream(0), steps, [&] { CHECK_CUDA(cudaGraphLaunch(exec, world.stream(0))); });
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(graph));
  return ms;
}

// Whether `name` holds one of the words of `only`, which commas separate.
inline bool isAsked(const std::string& name, const std::string& only) {
  std::stringstream words(only);
  std::string word;
  bool any = only.empty();
  while (!any && std::getline(words, word, ',')) any = name.find(word) != std::string::npos;
  return any;
}

// Of a list with commas.
inline std::vector<int> numbersOf(const char* list) {
  std::vector<int> numbers;
  for (std::stringstream words(list); words.good();) {
    std::string word;
    std::getline(words, word, ',');
    numbers.push_back(std::atoi(word.c_str()));
  }
  return numbers;
}

// `ctasOf` are the CTAs of each source.
inline bool bench(bool bulk, const std::vector<int>& ctasOf, const std::string& only) {
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 30;
  std::uint8_t *from = nullptr, *to = nullptr;
  CHECK_CUDA(cudaMalloc(&from, kBytes));
  CHECK_CUDA(cudaMalloc(&to, 2 * kBytes));
  CHECK_CUDA(cudaMemset(from, 3, kBytes));
  Stopwatch watch;
  const double ceiling = watch.median(nullptr, 5, [&] {
    for (int i = 0; i < 5; i++) CHECK_CUDA(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, nullptr));
  });
  std::printf("copy of 1 GiB: %.3f ms; bulk %d\n", ceiling, bulk);
  for (const Shape& shape : shapes()) {
    if (!isAsked(shape.name, only)) continue;
    // Bytes read and written, against twice those of the copy.
    const double bound = ceiling * static_cast<double>(shape.bytes + writtenBytes(shape)) / (2.0 * kBytes);
    std::printf("%-24s", shape.name.c_str());
    for (const int ctas : ctasOf) {
      std::vector<RankMoves> ranks(2 * kSides);
      std::vector<std::uint64_t> shards;
      for (int d = 0; d < kSides; d++)
        shards.push_back(reinterpret_cast<std::uint64_t>(to) +
                         static_cast<std::uint64_t>(d) * writtenBytes(shape) / kSides);
      for (int s = 0; s < kSides; s++) {
        const std::uint64_t shard =
            reinterpret_cast<std::uint64_t>(from) + static_cast<std::uint64_t>(s) * shape.bytes / kSides;
        ranks[s].stages[0] = movesOf(shape, s, shard, shards);
      }
      World world(ranks, {ctas, bulk});
      const bool small = shape.bytes < (8 << 20);
      const int steps = small ? 100 : 5;
      const double ms = watch.median(world.stream(0), steps, [&] { enqueueSteps(world, steps); });
      std::printf("  %2d: %.4f ms (%.2f)", world.ctas(0), ms, ms / bound);
      if (small) std::printf(" graph %.4f", graphMs(world, watch, steps));
      std::fflush(stdout);
      if (!world.quiet()) return false;
    }
    std::printf("\n");
  }
  CHECK_CUDA(cudaFree(from));
  CHECK_CUDA(cudaFree(to));
  return true;
}

// Guarded copies and fills of the runtime.
inline void benchMoves() {
  const Guard guard{pinned<DeviceStatus>(), pinned<RankWords>(), DeviceOp::kCopy};
  std::uint8_t *from = nullptr, *to = nullptr;
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 28;
  CHECK_CUDA(cudaMalloc(&from, kBytes));
  CHECK_CUDA(cudaMalloc(&to, kBytes));
  CHECK_CUDA(preloadMoves());
  Stopwatch watch;
  for (const std::uint64_t bytes : {std::uint64_t{1} << 12, std::uint64_t{1} << 20, std::uint64_t{1} << 24, kBytes}) {
    const double copy = watch.median(nullptr, 10, [&] {
      for (int i = 0; i < 10; i++) CHECK_CUDA(launchCopy(guard, to, from, bytes, nullptr));
    });
    const double fill = watch.median(nullptr, 10, [&] {
      for (int i = 0; i < 10; i++) CHECK_CUDA(launchFill(guard, to, 7, bytes, nullptr));
    });
    std::printf("%10llu bytes: copy %.4f ms, fill %.4f ms\n", static_cast<unsigned long long>(bytes), copy, fill);
  }
  CHECK_CUDA(cudaFree(from));
  CHECK_CUDA(cudaFree(to));
}

}  // namespace nccl_ext::test

// SPDX-License-Identifier: Apache-2.0
// The transfer kernel against a host that makes the same moves byte by byte; and how fast it is. One GPU, no NCCL, no Node.
//
//   kernel_check check [rounds]     every byte of random programs, failures, and small copies of the measured shapes
//   kernel_check bench [bulk 0|1 [ctas,... [shape]]]   ms and share of the copy ceiling by CTAs per source rank, of the shapes
//                                   whose name holds the last word
//   kernel_check moves              ms of the runtime's guarded copies and fills
//
// Every wait in the kernels has a deadline, so nothing hangs; the caller limits the time all the same. From native/:
//
//   nvcc -std=c++17 -O3 -fmad=false -gencode=arch=compute_90a,code=sm_90a -I. tests/gpu/m2n/kernel_check.cu m2n/transfer.cu \
//     runtime/moves.cu m2n/bundle_moves.cc m2n/move_shape.cc m2n/tile_bundles.cc m2n/program_image.cc -o kernel_check
#include <algorithm>
#include <string>

#include "bench.cuh"
#include "run_lengths.cuh"

namespace nccl_ext::test {
namespace {

bool checkRandom(int rounds, bool bulk) {
  for (int round = 0; round < rounds; round++) {
    const int size = 1 + round % 6;
    Memories memories(size, kSpace);
    Generator g{std::mt19937_64(1000 + static_cast<unsigned>(round)), std::vector<std::uint64_t>(size),
                std::vector<std::uint64_t>(size)};
    std::vector<RankMoves> ranks(size);
    for (int rank = 0; rank < size; rank++) {
      for (std::uint64_t tensor = g.pick(round % 5 == 0 ? 60 : 8); tensor-- > 0;) addTensor(g, memories, ranks, rank);
    }
    const StageLimits limits{static_cast<int>(1 + g.pick(16)), bulk};
    if (executeAndCompare(memories, ranks, limits, g)) continue;
    std::printf("round %d of %d ranks, at most %d CTAs, bulk %d\n", round, size, limits.ctas, bulk);
    return false;
  }
  std::printf("%d random programs, bulk %d: every byte is right\n", rounds, bulk);
  return true;
}

bool checkShapes(bool bulk) {
  Generator g{std::mt19937_64(5), {}, {}};
  for (Shape shape : shapes()) {
    const std::uint64_t rows = std::max<std::uint64_t>(1, shape.run) * shape.columns * kSides;
    shape.bytes = std::min<std::uint64_t>(shape.bytes, (8 << 20) / rows * rows);
    Memories memories(2 * kSides, shape.bytes);
    std::vector<RankMoves> ranks(2 * kSides);
    std::vector<std::uint64_t> to;
    for (int d = 0; d < kSides; d++) to.push_back(memories.destinations[kSides + d].address(0));
    for (int s = 0; s < kSides; s++) ranks[s].stages[0] = movesOf(shape, s, memories.sources[s].address(0), to);
    if (!executeAndCompare(memories, ranks, {8, bulk}, g)) return false;
  }
  std::printf("measured shapes, bulk %d: every byte is right\n", bulk);
  return true;
}

bool checkRuns(bool bulk) {
  for (std::uint64_t shift = 0; shift < 16; shift += 3) {
    if (executeRunLengths({shift, 1, 1, 5}, {static_cast<int>(1 + shift), bulk})) continue;
    std::printf("runs of every length, shift %d, bulk %d\n", static_cast<int>(shift), bulk);
    return false;
  }
  std::printf("runs of every length and alignment, bulk %d: every byte is right\n", bulk);
  return true;
}

// A receiver that does not come: the sender's record names it, no byte is written, and what follows is skipped.
bool checkMissing(bool bulk) {
  Memories memories(2, 1 << 20);
  std::vector<RankMoves> ranks(2);
  Move move;
  move.peer = 1;
  move.source = memories.sources[0].address(0);
  move.destination = memories.destinations[1].address(0);
  move.inner = 1 << 20;
  ranks[0].stages[0] = {move};
  for (Memory& memory : memories.sources)
    std::fill(memory.host.begin(), memory.host.end(), std::uint8_t{7}), memory.push();
  for (Memory& memory : memories.destinations) memory.push();
  World world(ranks, {4, bulk}, 20'000'000);
  world.enqueue(0, world.stream(0));
  CHECK_CUDA(cudaDeviceSynchronize());
  DeviceStatus first = world.status(0);
  clear(const_cast<DeviceStatus&>(world.status(0)));
  world.enqueue(0, world.stream(0));
  world.enqueue(1, world.stream(1));
  CHECK_CUDA(cudaDeviceSynchronize());
  const bool right = first.code == static_cast<int>(ErrorCode::kTimeout) && first.peer == 1 &&
                     world.status(0).code == static_cast<int>(ErrorCode::kPoisoned) &&
                     world.status(1).code == static_cast<int>(ErrorCode::kTimeout) && world.status(1).peer == 0 &&
                     world.counts(0).completed == 0 && same(memories);
  std::printf("a missing receiver, bulk %d: %s (codes %d %d %d)\n", bulk, right ? "right" : "WRONG", first.code,
              world.status(0).code, world.status(1).code);
  return right;
}

int runAll(int count, char** words) {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  CHECK_CUDA(cudaSetDevice(0));
  bool bulk = false;
  CHECK_CUDA(preloadTransfer(bulk));
  const std::string what = count > 1 ? words[1] : "check";
  if (what == "bench") {
    const bool engine = bulk && (count < 3 || std::atoi(words[2]) != 0);
    return bench(engine, numbersOf(count > 3 ? words[3] : "4,8,13,16,32"), count > 4 ? words[4] : "") ? 0 : 1;
  }
  if (what == "moves") {
    benchMoves();
    return 0;
  }
  const int rounds = count > 2 ? std::atoi(words[2]) : 100;
  bool right = true;
  for (const bool engine : {false, true}) {
    if (engine && !bulk) continue;
    right = right && checkMissing(engine) && checkRuns(engine) && checkShapes(engine) && checkRandom(rounds, engine);
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace nccl_ext::test

int main(int count, char** words) {
  return nccl_ext::test::runAll(count, words);
}

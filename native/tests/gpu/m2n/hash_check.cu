// SPDX-License-Identifier: Apache-2.0
// The kernels that hash a verified transfer, against a host that does so byte by byte; and how fast they read. One GPU, no NCCL, no Node.
//
//   hash_check check [rounds]    sums of random moves, of runs of every length and alignment, of many tensors, and of casts
//   hash_check bench [ctas,...]  GB/s of memory hashed, by CTAs
//
// Nothing waits in these kernels. From native/:
//
//   nvcc -std=c++17 -O3 -fmad=false -gencode=arch=compute_90a,code=sm_90a -I. tests/gpu/m2n/hash_check.cu m2n/hash.cu \
//     m2n/hash_side.cc m2n/hash_tiles.cc -o hash_check
#include <algorithm>
#include <string>

#include "bench.cuh"
#include "hash_lists.cuh"

namespace nccl_ext::test {
namespace {

bool checkRandom(int rounds) {
  for (int round = 0; round < rounds; round++) {
    Random random{std::mt19937_64(500 + static_cast<unsigned>(round))};
    std::vector<Bytes> memories(1 + random.pick(60));
    std::vector<HashSide> sides;
    for (std::size_t i = 0; i < memories.size(); i++) {
      sides.push_back(randomSide(random, memories[i]));
      sides.back().group = static_cast<std::uint32_t>(i / 3);
    }
    if (sumsAsOracle(memories, sides, static_cast<int>(1 + random.pick(20)))) continue;
    std::printf("round %d\n", round);
    return false;
  }
  std::printf("%d random lists: every sum is right\n", rounds);
  return true;
}

// Memory that ends where a run does: a byte too many is for compute-sanitizer to find.
bool checkRuns() {
  for (std::uint64_t skew = 0; skew < 16; skew++) {
    std::vector<Bytes> memories;
    std::vector<HashSide> sides;
    Random random{std::mt19937_64(skew)};
    memories.reserve(600);
    for (std::uint64_t run = 1; run <= 300; run++) {
      for (const std::uint64_t factor : {1u, 23u}) {
        memories.emplace_back(skew + run * factor);
        for (std::uint8_t& byte : memories.back()) byte = static_cast<std::uint8_t>(random.engine());
        HashSide side;
        side.address = at(memories.back()) + skew;
        side.inner = run * factor;
        side.group = static_cast<std::uint32_t>(sides.size());
        sides.push_back(side);
      }
    }
    if (!sumsAsOracle(memories, sides, 4)) return false;
  }
  std::printf("runs of every length and alignment: every sum is right\n");
  return true;
}

// More moves than a warp looks through at a time, many of them empty of tiles that it takes; tiles of one group on many SMs.
bool checkMany() {
  Random random{std::mt19937_64(3)};
  std::vector<Bytes> memories;
  std::vector<HashSide> sides;
  memories.reserve(5000);
  for (std::uint32_t i = 0; i < 5000; i++) {
    memories.emplace_back(random.pick(50) == 0 ? 1 + random.pick(300'000) : 1 + random.pick(600));
    for (std::uint8_t& byte : memories.back()) byte = static_cast<std::uint8_t>(random.engine());
    HashSide side;
    side.address = at(memories.back());
    side.inner = memories.back().size();
    side.group = i;
    sides.push_back(side);
  }
  for (const int ctas : {1, 7, 28, 132}) {
    if (!sumsAsOracle(memories, sides, ctas)) return false;
  }
  std::printf("5000 tensors: every sum is right\n");
  return true;
}

void benchAll(const std::vector<int>& ctasOf, const std::string& only) {
  std::uint8_t* memory = nullptr;
  CHECK_CUDA(cudaMalloc(&memory, kBenchBytes + 64));
  CHECK_CUDA(cudaMemset(memory, 3, kBenchBytes + 64));
  Stopwatch watch;
  for (const HashShape& shape : hashShapes(reinterpret_cast<std::uint64_t>(memory))) {
    if (!isAsked(shape.name, only)) continue;
    std::printf("%-26s", shape.name.c_str());
    for (const int ctas : ctasOf) {
      HashRun run(shape.sides, ctas);
      const double ms = watch.median(nullptr, 1, [&] { run.enqueue(); });
      std::printf("  %3d: %7.3f ms %5.0f GB/s", ctas, ms, static_cast<double>(shape.bytes) / ms / 1e6);
      std::fflush(stdout);
    }
    std::printf("\n");
  }
  CHECK_CUDA(cudaFree(memory));
}

int runAll(int count, char** words) {
  CHECK_CUDA(cudaSetDevice(0));
  CHECK_CUDA(preloadHashes());
  if (count > 1 && std::string(words[1]) == "bench") {
    benchAll(numbersOf(count > 2 ? words[2] : "4,8,16,28"), count > 3 ? words[3] : "");
    return 0;
  }
  const int rounds = count > 2 ? std::atoi(words[2]) : 100;
  return checkRuns() && checkMany() && checkRandom(rounds) ? 0 : 1;
}

}  // namespace
}  // namespace nccl_ext::test

int main(int count, char** words) {
  return nccl_ext::test::runAll(count, words);
}

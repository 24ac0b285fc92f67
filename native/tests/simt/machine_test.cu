// SPDX-License-Identifier: Apache-2.0
// The machine finds what is planted in small kernels: a test of kernels that stays quiet there would prove nothing.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "runtime/bulk_ptx.cuh"
#include "runtime/ptx.cuh"
#include "runtime/shared/sync.hpp"

namespace nccl_ext::test {
namespace {

using simt::machine;

// A wave of lanes through one warp.
__global__ void sumKernel(std::uint32_t* sum) {
  std::uint32_t mine = threadIdx.x;
  for (int lanes = 16; lanes > 0; lanes /= 2) mine += __shfl_xor_sync(0xffff'ffff, mine, lanes);
  if (threadIdx.x == 5) *sum = mine;
}

__global__ void divergeKernel() {
  if (threadIdx.x % 2 == 0)
    __syncwarp();
  else
    __shfl_sync(0xffff'ffff, threadIdx.x, 0);
}

__global__ void loopKernel() {
  // Lane 7 leaves the loop one turn earlier.
  for (unsigned turn = 0; turn < (threadIdx.x == 7 ? 2u : 3u); turn++) __syncwarp();
}

__global__ void leaveKernel() {
  if (threadIdx.x == 40) return;
  __syncthreads();
}

__global__ void twoBarriersKernel() {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
}

__global__ void spinKernel(std::uint32_t* flag) {
  while (observe<kDevice>(*flag) == 0) {
  }
}

__global__ void uninitialisedKernel(std::uint32_t* out) {
  __shared__ std::uint32_t word;
  if (threadIdx.x == 1) word = 0;
  if (threadIdx.x == 0) *out = word;
}

__global__ void misalignedKernel(const uint4* from) {
  __ldcs(from);
}

struct BulkStorage {
  std::uint64_t loaded;
};

// One warp loads 512 bytes and stores them; the rest is what a test leaves out.
struct BulkArgs {
  const std::uint8_t* from;
  std::uint8_t* to;
  bool waitsForLoad = true, waitsForStore = true, initialises = true, waitsForRead = true;
  std::uint32_t bytes = 512, expected = 512;
};

__global__ void bulkKernel(const __grid_constant__ BulkArgs args) {
  extern __shared__ __align__(128) std::uint8_t stage[];
  __shared__ BulkStorage shared;
  if (threadIdx.x == 0 && args.initialises) ptx::mbarrierInit(shared.loaded);
  __syncthreads();
  if (ptx::electSync()) {
    ptx::mbarrierArriveExpectTx(shared.loaded, args.expected);
    ptx::cpAsyncBulkLoad(ptx::sharedAddress(stage), reinterpret_cast<std::uint64_t>(args.from), args.bytes,
                         ptx::sharedAddress(&shared.loaded));
  }
  __syncwarp();
  while (args.waitsForLoad && !ptx::mbarrierTryWait(shared.loaded, 0)) {
  }
  if (ptx::electSync())
    ptx::cpAsyncBulkStore(reinterpret_cast<std::uint64_t>(args.to), ptx::sharedAddress(stage), args.bytes);
  ptx::cpAsyncBulkCommitGroup();
  if (args.waitsForRead) ptx::cpAsyncBulkWaitGroupRead<0>();
  __syncwarp();
  stage[threadIdx.x] = 0;
  if (args.waitsForStore) ptx::cpAsyncBulkWaitGroup();
}

template <class... Parameters, class... Arguments>
std::string problemOf(void (*kernel)(Parameters...), unsigned threads, std::uint64_t seed, Arguments... arguments) {
  machine().reset(seed, 100'000);
  simt::launch(kernel, {1, threads, 4096, nullptr}, arguments...);
  const std::string problem = machine().run();
  machine().reset(seed);
  return problem;
}

bool has(const std::string& text, const char* word) {
  return text.find(word) != std::string::npos;
}

TEST(SimtMachine, RunsCollectives) {
  for (std::uint64_t seed = 0; seed < 20; seed++) {
    std::uint32_t sum = 0;
    EXPECT_EQ(problemOf(sumKernel, 32, seed, &sum), "");
    EXPECT_EQ(sum, 31u * 16);
  }
}

TEST(SimtMachine, FindsDivergence) {
  for (std::uint64_t seed = 0; seed < 20; seed++) {
    EXPECT_TRUE(has(problemOf(divergeKernel, 32, seed), "divergence"));
    EXPECT_TRUE(has(problemOf(loopKernel, 32, seed), "ended"));
    EXPECT_TRUE(has(problemOf(leaveKernel, 64, seed), "ended"));
    EXPECT_TRUE(has(problemOf(twoBarriersKernel, 64, seed), "divergence"));
  }
}

TEST(SimtMachine, EndsWhatWaitsForever) {
  std::uint32_t flag = 0;
  EXPECT_TRUE(has(problemOf(spinKernel, 32, 1, &flag), "nothing moves"));
}

TEST(SimtMachine, FillsSharedMemoryWithGarbage) {
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 40; seed++) {
    std::uint32_t seen = 0;
    EXPECT_EQ(problemOf(uninitialisedKernel, 32, seed, &seen), "");
    if (seen != 0) wrong++;
  }
  EXPECT_GT(wrong, 5);
}

TEST(SimtMachine, FindsMisalignedVectors) {
  alignas(16) static const std::uint8_t bytes[64] = {};
  const auto at = [](int offset) { return static_cast<const uint4*>(static_cast<const void*>(bytes + offset)); };
  EXPECT_EQ(problemOf(misalignedKernel, 1, 1, at(16)), "");
  EXPECT_TRUE(has(problemOf(misalignedKernel, 1, 1, at(8)), "at no multiple"));
}

struct Bytes {
  alignas(16) std::uint8_t from[528], to[528] = {};
  Bytes() { std::iota(from, from + sizeof from, std::uint8_t{1}); }
  BulkArgs args() {
    BulkArgs args;
    args.from = from;
    args.to = to;
    return args;
  }
  bool right() const { return std::equal(from, from + 512, to) && std::count(to + 512, to + 528, 0) == 16; }
};

TEST(SimtMachine, CopiesInBulk) {
  for (std::uint64_t seed = 0; seed < 40; seed++) {
    Bytes bytes;
    EXPECT_EQ(problemOf(bulkKernel, 32, seed, bytes.args()), "");
    EXPECT_TRUE(bytes.right());
  }
}

// How often of 40 something is wrong; the engine may be quick.
int wrongOf(void (*plant)(BulkArgs&)) {
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 40; seed++) {
    Bytes bytes;
    BulkArgs args = bytes.args();
    plant(args);
    if (!problemOf(bulkKernel, 32, seed, args).empty() || !bytes.right()) wrong++;
  }
  return wrong;
}

TEST(SimtMachine, FindsMissingWaitsForTheBulkEngine) {
  EXPECT_GT(wrongOf([](BulkArgs& args) { args.waitsForLoad = false; }), 10);
  EXPECT_GT(wrongOf([](BulkArgs& args) { args.waitsForRead = false; }), 10);
  EXPECT_EQ(wrongOf([](BulkArgs& args) { args.waitsForStore = false; }), 40);
}

TEST(SimtMachine, FindsWhatTheBulkEngineCannotDo) {
  EXPECT_EQ(wrongOf([](BulkArgs& args) { args.initialises = false; }), 40);
  EXPECT_EQ(wrongOf([](BulkArgs& args) { args.expected = 496; }), 40);
  EXPECT_EQ(wrongOf([](BulkArgs& args) { args.bytes = 504; }), 40);
  EXPECT_EQ(wrongOf([](BulkArgs& args) { args.from += 8; }), 40);
  EXPECT_EQ(wrongOf([](BulkArgs& args) { args.to += 4; }), 40);
  EXPECT_EQ(wrongOf([](BulkArgs& args) { args.bytes = args.expected = 8192; }), 40);
}

}  // namespace
}  // namespace nccl_ext::test

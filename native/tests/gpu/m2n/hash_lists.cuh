// SPDX-License-Identifier: Apache-2.0
// Lists of sides on a GPU: hashed there, compared with the host, and the shapes that are measured.
#pragma once

#include "m2n/hash.hpp"
#include "m2n/hash_tiles.hpp"
#include "one_gpu_world.cuh"
#include "tests/support/hash_sides.hpp"

namespace nccl_ext::test {

// One hash with everything that its kernel is given.
class HashRun {
 public:
  HashRun(const std::vector<HashSide>& sides, int ctas) : ctas_(ctas) {
    HashList list;
    for (const HashSide& side : sides) addSide(side, list.moves);
    cutHashTiles(list, ctas);
    groups_ = sides.back().group + 1;
    status_ = pinned<DeviceStatus>();
    words_ = pinned<RankWords>();
    auto* moves = upload(list.moves);
    auto* firstTiles = upload(list.firstTiles);
    auto* taken = upload(std::vector<HashTaken>(kHashes));
    auto* state = upload(std::vector<TransferState>(1));
    auto* sums = upload(std::vector<std::uint64_t>(2 * groups_));
    memory_ = {moves, firstTiles, taken, state, sums};
    args_ = {moves,      firstTiles, taken, {sums, groups_}, static_cast<std::uint32_t>(list.moves.size()),
             list.tiles, 1,          state, status_,         words_};
    clear_.sent = {sums, groups_};
    clear_.taken = taken;
    clear_.state = state;
    clear_.status = status_;
    clear_.words = words_;
  }
  HashRun(const HashRun&) = delete;
  ~HashRun() {
    for (void* memory : memory_) cudaFree(memory);
    cudaFreeHost(status_);
    cudaFreeHost(words_);
  }

  void enqueue() {
    CHECK_CUDA(launchClearHashes(clear_, nullptr));
    CHECK_CUDA(launchHash(args_, ctas_, nullptr));
  }
  RankWords& words() { return *words_; }
  std::vector<std::uint64_t> sums() {
    std::vector<std::uint64_t> out(groups_);
    CHECK_CUDA(cudaMemcpy(out.data(), sumsOf(args_.into, 1), groups_ * sizeof out[0], cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  int ctas_;
  std::uint32_t groups_;
  DeviceStatus* status_;
  RankWords* words_;
  std::vector<void*> memory_;
  HashArgs args_ = {};
  CompareArgs clear_ = {};
};

// Whether the GPU sums the sides, each of which lies in the memory with its number, as the host does.
inline bool sumsAsOracle(const std::vector<Bytes>& memories, const std::vector<HashSide>& sides, int ctas) {
  std::vector<std::uint64_t> expected(sides.back().group + 1);
  std::vector<HashSide> there = sides;
  std::vector<void*> copies;
  for (std::size_t i = 0; i < sides.size(); i++) {
    expected[sides[i].group] += oracle(sides[i]);
    copies.push_back(upload(memories[i]));
    there[i].address = reinterpret_cast<std::uint64_t>(copies.back()) + (sides[i].address - at(memories[i]));
  }
  HashRun run(there, ctas);
  bool right = true;
  for (int execution = 0; execution < 2; execution++) {
    run.enqueue();
    const std::vector<std::uint64_t> seen = run.sums();
    for (std::size_t group = 0; right && group < seen.size(); group++) {
      right = seen[group] == expected[group];
      if (!right) std::printf("group %zu of %zu has another sum\n", group, seen.size());
    }
  }
  for (void* copy : copies) CHECK_CUDA(cudaFree(copy));
  return right;
}

struct HashShape {
  std::string name;
  std::uint64_t bytes;  // that are hashed, as they lie in memory
  std::vector<HashSide> sides;
};

constexpr std::uint64_t kBenchBytes = std::uint64_t{4} << 30;

// Runs of `run` bytes, `pitch` from each other, `skew` bytes behind a multiple of 16.
inline HashShape runShape(const char* name, std::uint64_t memory, std::uint64_t run, std::uint64_t pitch,
                          std::uint64_t runs, std::uint64_t skew = 0) {
  HashSide side;
  side.address = memory + skew;
  side.inner = run;
  side.counts[2] = runs;
  side.strides[2] = static_cast<std::int64_t>(pitch);
  return {name, run * runs, {side}};
}

inline HashShape castShape(const char* name, std::uint64_t memory, DType from, DType to, std::uint64_t elements) {
  HashSide side;
  side.address = memory;
  side.inner = elements;
  side.unit = elementBytes(from);
  side.wordUnit = elementBytes(to);
  side.transform = castTransform(from, to);
  return {name, elements * side.unit, {side}};
}

// As weights of many experts: most of the bytes in large tensors, most tensors small.
inline HashShape manyShape(std::uint64_t memory) {
  std::mt19937_64 random(1);
  HashShape shape{"20000 tensors", 0, {}};
  for (std::uint32_t i = 0; i < 20'000; i++) {
    HashSide side;
    side.inner = std::uint64_t{512} << random() % 11;
    side.inner += random() % 3 == 0 ? side.inner / 2 / 16 * 16 : 0;
    if (shape.bytes + side.inner > kBenchBytes) break;
    side.address = memory + shape.bytes;
    side.group = i;
    shape.bytes += side.inner;
    shape.sides.push_back(side);
  }
  return shape;
}

inline std::vector<HashShape> hashShapes(std::uint64_t memory) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  return {runShape("one run, 4 GiB", memory, 4 * kGiB, 0, 1),
          runShape("one run, 1 MiB", memory, kGiB / 1024, 0, 1),
          runShape("one run, 3 bytes off", memory, kGiB, 0, 1, 3),
          runShape("8 KiB runs of 32 KiB", memory, 8192, 32'768, kGiB / 8192),
          runShape("1001-byte runs of 4004", memory, 1001, 4004, kGiB / 4096),
          runShape("256-byte runs of 1024", memory, 256, 1024, kGiB / 256),
          runShape("24-byte runs of 96", memory, 24, 96, kGiB / 96),
          runShape("24-byte runs, 3 bytes off", memory, 24, 96, kGiB / 96, 3),
          runShape("8-byte runs of 32", memory, 8, 32, kGiB / 32),
          manyShape(memory),
          castShape("f32 to bf16", memory, DType::kF32, DType::kBf16, kGiB / 4),
          castShape("bf16 to f32", memory, DType::kBf16, DType::kF32, kGiB / 2),
          castShape("bf16 to f8e4m3", memory, DType::kBf16, DType::kF8e4m3, kGiB / 2),
          castShape("f16 to f8e5m2 (any pair)", memory, DType::kF16, DType::kF8e5m2, kGiB / 8)};
}

}  // namespace nccl_ext::test

// SPDX-License-Identifier: Apache-2.0
// The memories of all ranks on the GPU and on the host, where the oracle makes the same moves.
#pragma once

#include "m2n/move_shape.hpp"
#include "m2n/shared/cast.hpp"
#include "one_gpu_world.cuh"

namespace nccl_ext::test {

// Both memories of a rank, on the GPU and on the host.
struct Memory {
  std::uint8_t* device = nullptr;
  std::vector<std::uint8_t> host;

  void allocate(std::uint64_t bytes) {
    CHECK_CUDA(cudaFree(device));
    CHECK_CUDA(cudaMalloc(&device, bytes));
    host.resize(bytes);
  }
  void push() { CHECK_CUDA(cudaMemcpy(device, host.data(), host.size(), cudaMemcpyHostToDevice)); }
  std::uint64_t address(std::uint64_t offset) const { return reinterpret_cast<std::uint64_t>(device) + offset; }
  std::uint8_t* at(std::uint64_t address) { return host.data() + (address - reinterpret_cast<std::uint64_t>(device)); }
  bool holds(std::uint64_t address) const { return address - reinterpret_cast<std::uint64_t>(device) < host.size(); }
};

struct Memories {
  std::vector<Memory> sources, destinations;

  explicit Memories(int ranks, std::uint64_t bytes) : sources(ranks), destinations(ranks) {
    for (Memory& memory : sources) memory.allocate(bytes);
    for (Memory& memory : destinations) memory.allocate(bytes);
  }
  ~Memories() {
    for (Memory& memory : sources) cudaFree(memory.device);
    for (Memory& memory : destinations) cudaFree(memory.device);
  }
  std::uint8_t* at(std::uint64_t address) {
    for (auto* side : {&sources, &destinations}) {
      for (Memory& memory : *side) {
        if (memory.holds(address)) return memory.at(address);
      }
    }
    std::printf("an address outside of every memory\n");
    std::exit(1);
  }
};

// The oracle.
inline void move(Memories& memories, const Move& move) {
  const std::uint64_t from = sourceBytes(move), to = destinationBytes(move);
  std::uint64_t index[3];
  for (index[0] = 0; index[0] < move.counts[0]; index[0]++)
    for (index[1] = 0; index[1] < move.counts[1]; index[1]++)
      for (index[2] = 0; index[2] < move.counts[2]; index[2]++) {
        std::uint64_t source = move.source, destination = move.destination;
        for (int loop = 0; loop < 3; loop++) {
          source += index[loop] * static_cast<std::uint64_t>(move.sourceStrides[loop]);
          destination += index[loop] * static_cast<std::uint64_t>(move.destinationStrides[loop]);
        }
        if (move.transform == 0) {
          std::memcpy(memories.at(destination), memories.at(source), move.inner);
          continue;
        }
        for (std::uint64_t i = 0; i < move.inner; i++) {
          std::uint64_t bits = 0;
          std::memcpy(&bits, memories.at(source + i * from), from);
          bits = castBits(static_cast<DType>((move.transform - 1) / 32), static_cast<DType>((move.transform - 1) % 32),
                          bits);
          std::memcpy(memories.at(destination + i * to), &bits, to);
        }
      }
}

}  // namespace nccl_ext::test

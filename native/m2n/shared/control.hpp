// SPDX-License-Identifier: Apache-2.0
// The cells by which the ranks of a transfer tell each other how far they are: one block per rank and transfer, in device
// memory that every peer can write.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/shared/qualifiers.hpp"

namespace nccl_ext {

inline constexpr int kTransferStages = 2;

// One writer per cell; 128 bytes keep writers off each other's cache lines. All start at 0.
struct alignas(128) TransferCell {
  std::uint64_t value = 0;
};
static_assert(sizeof(TransferCell) == 128);

// In the block of a sender: the epoch for which `receiver` lets it write.
NCCL_EXT_HD inline constexpr std::size_t grantCell(int receiver) {
  return static_cast<std::size_t>(receiver);
}
// Written by `sender` when all its bytes of a stage are in.
NCCL_EXT_HD inline constexpr std::size_t arrivalCell(int size, int stage, int sender) {
  return static_cast<std::size_t>(size) * static_cast<std::size_t>(1 + stage) + static_cast<std::size_t>(sender);
}
// Bytes that the owner of the block has written over all executions; peers read it before they give up.
NCCL_EXT_HD inline constexpr std::size_t progressCell(int size) {
  return static_cast<std::size_t>(size) * (1 + kTransferStages);
}
// Cells of a block.
NCCL_EXT_HD inline constexpr std::size_t controlCells(int size) {
  return progressCell(size) + 1;
}

// Of one transfer on one rank, in its device memory; starts as zeros.
struct alignas(128) TransferState {
  std::uint64_t epoch = 0;      // executions done, failed and skipped ones included; written by the last CTA alone
  std::uint32_t done = 0;       // CTAs of the running stage that are done
  std::uint32_t failed = 0;     // 1: a CTA of the running execution failed or skipped its part
  std::uint64_t admission = 0;  // of the running stage, as admissionOf has it; written by CTA 0 alone
  std::uint64_t completed = 0;  // executions without an error; written by the last CTA alone
  std::uint64_t steps = 0;      // kernels done, where they are watched; written by the last CTA alone
  // Tiles of the running stage that warps took, by part: bulk, vector. On lines of their own: many add to them.
  struct alignas(128) Taken {
    std::uint32_t tiles = 0;
  } taken[2];
};

// What the host reads while executions run, in pinned memory.
struct alignas(64) TransferCounts {
  std::uint64_t written = 0;    // bytes, as in TransferProgress of contract/m2n.ts
  std::uint64_t completed = 0;  // executions without an error
  std::uint64_t steps = 0;      // kernels done, failed and skipped ones included
};

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
// Where a rank's memory holds elements of a tensor, as boxes, and how boxes are cut into tiles of work.
// m2n/src/refit/device-values/box-table.ts writes these structs.
#pragma once

#include <cstdint>

#include "runtime/shared/qualifiers.hpp"

namespace nccl_ext {

inline constexpr int kBoxLoops = 3;

// Runs of elements that lie densely in the memory and in the tensor, repeated over three outer loops, outermost first.
struct ValueBox {
  std::uint64_t local = 0;    // byte of the memory at which the first element lies
  std::uint64_t element = 0;  // row-major index of the first element in the tensor
  std::uint64_t inner = 0;    // elements of a run
  std::uint64_t counts[kBoxLoops] = {1, 1, 1};
  std::uint64_t localStrides[kBoxLoops] = {};    // bytes
  std::uint64_t elementStrides[kBoxLoops] = {};  // elements
  std::uint64_t firstTile = 0;                   // tiles of the boxes before it
  std::uint64_t segment = 0;                     // elements of a run that one tile has at most
  std::uint32_t rows = 0;                        // runs of a tile; more than one only where segment is inner
  std::uint32_t seed = 0;
  std::uint32_t evenMask = 0, oddMask = 0;
  std::uint32_t from = 0, to = 0;  // dtypes by code: of the values, and of the memory
};
static_assert(sizeof(ValueBox) == 136);

// What a comparison found in a rank's memory.
struct ValueDifference {
  std::uint64_t bytes = 0;                  // that differ
  std::uint64_t first = ~std::uint64_t{0};  // the first of them, by place in the memory
};

// The last box whose tiles begin at or before `tile`.
NCCL_EXT_HD inline const ValueBox& boxOfTile(const ValueBox* boxes, std::uint32_t count, std::uint64_t tile) {
  std::uint32_t low = 0, high = count;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (boxes[middle].firstTile <= tile ? low : high) = middle;
  }
  return boxes[low];
}

// Calls run(local byte, index in the tensor, elements) for every run or piece of one in a tile.
template <class Run>
NCCL_EXT_HD inline void forRuns(const ValueBox& box, std::uint64_t tile, Run&& run) {
  const std::uint64_t segments = (box.inner + box.segment - 1) / box.segment;
  const std::uint64_t number = tile - box.firstTile;
  const std::uint64_t skipped = number % segments * box.segment;
  const std::uint64_t left = box.inner - skipped, elements = left < box.segment ? left : box.segment;
  std::uint64_t row = number / segments * box.rows;
  const std::uint64_t total = box.counts[0] * box.counts[1] * box.counts[2];
  const std::uint64_t end = row + box.rows < total ? row + box.rows : total;
  std::uint64_t at[kBoxLoops] = {row / (box.counts[1] * box.counts[2]), row / box.counts[2] % box.counts[1],
                                 row % box.counts[2]};
  for (; row < end; row++) {
    std::uint64_t local = box.local, element = box.element + skipped;
    for (int loop = 0; loop < kBoxLoops; loop++) {
      local += at[loop] * box.localStrides[loop];
      element += at[loop] * box.elementStrides[loop];
    }
    run(local, element, skipped, elements);
    for (int loop = kBoxLoops - 1; loop >= 0 && ++at[loop] == box.counts[loop]; loop--) at[loop] = 0;
  }
}

}  // namespace nccl_ext

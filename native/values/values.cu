// SPDX-License-Identifier: Apache-2.0
// values: makes up the values of a rank's tensors where they lie, and compares memory with them. Not in the addon: m2n loads its PTX
// (m2n/src/refit/device-values/generated), as a user would.
// flow    tiles go round the warps of the grid; a warp finds the box of its tile, and its lanes share each run
// roles   every warp the same
// edges   none: stream order alone
// limits  any grid; blocks of whole warps
// failure none
#include "values/shared/value_tile.hpp"

namespace {

using namespace nccl_ext;

constexpr std::uint32_t kWarp = 32;
constexpr int kThreads = 256;

template <class Tile>
__device__ void forTiles(const ValueBox* boxes, std::uint32_t count, std::uint64_t tiles, Tile&& tile) {
  const std::uint64_t warps = std::uint64_t{gridDim.x} * blockDim.x / kWarp;
  const std::uint64_t first = (std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  for (std::uint64_t number = first; number < tiles; number += warps) tile(boxOfTile(boxes, count, number), number);
}

__device__ Lane lane() {
  return {threadIdx.x % kWarp, kWarp};
}

}  // namespace

// boxes[count] with `tiles` tiles in all, over memory that starts at `memory`.
extern "C" __global__ void __launch_bounds__(kThreads)
    write_values(std::uint8_t* memory, const ValueBox* boxes, std::uint32_t count, std::uint64_t tiles) {
  forTiles(boxes, count, tiles,
           [&](const ValueBox& box, std::uint64_t number) { writeTile(memory, box, number, lane()); });
}

// Adds to *found, which starts as {0, 2^64 - 1}.
extern "C" __global__ void __launch_bounds__(kThreads)
    compare_values(const std::uint8_t* memory, const ValueBox* boxes, std::uint32_t count, std::uint64_t tiles,
                   ValueDifference* found) {
  ValueDifference mine;
  forTiles(boxes, count, tiles,
           [&](const ValueBox& box, std::uint64_t number) { compareTile(memory, box, number, lane(), mine); });
  if (mine.bytes == 0) return;
  atomicAdd(reinterpret_cast<unsigned long long*>(&found->bytes), static_cast<unsigned long long>(mine.bytes));
  atomicMin(reinterpret_cast<unsigned long long*>(&found->first), static_cast<unsigned long long>(mine.first));
}

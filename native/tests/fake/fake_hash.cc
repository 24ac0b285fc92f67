// SPDX-License-Identifier: Apache-2.0
// The kernels of m2n/hash.cu on a host thread, by the same tiles and slots.
#include "m2n/hash.hpp"
#include "m2n/shared/hash_slot.hpp"
#include "tests/fake/fake_cudart.hpp"

namespace nccl_ext {
namespace {

bool mustSkip(DeviceStatus* status, RankWords* words) {
  return skipReason(Guard{status, words, DeviceOp::kTransfer}) != ErrorCode::kNone;
}

void clearSums(const HashSums& side, std::uint64_t epoch) {
  for (std::uint32_t i = 0; i < side.groups; i++) sumsOf(side, epoch)[i] = 0;
}

void compareAll(const CompareArgs& args) {
  bool same = true;
  for (std::uint32_t i = 0; i < args.received.groups; i++) same = compareGroup(args, i, args.state->epoch) && same;
  if (!same) discount(args);
}

}  // namespace

cudaError_t launchClearHashes(const CompareArgs& args, cudaStream_t stream) {
  return fake::launch(stream, [args] {
    if (mustSkip(args.status, args.words)) return;
    for (int hash = 0; hash < kHashes; hash++) args.taken[hash].tiles = 0;
    clearSums(args.sent, args.state->epoch + 1);
    clearSums(args.received, args.state->epoch + 1);
  });
}

cudaError_t launchHash(const HashArgs& args, int, cudaStream_t stream) {
  return fake::launch(stream, [args] {
    if (mustSkip(args.status, args.rankWords)) return;
    std::uint64_t* sums = sumsOf(args.into, args.state->epoch + static_cast<std::uint64_t>(args.begun));
    for (std::uint32_t move = 0; args.taken->tiles < args.tiles; args.taken->tiles++) {
      while (move + 1 < args.moveCount && args.firstTiles[move + 1] <= args.taken->tiles) move++;
      const std::uint32_t tile = args.taken->tiles - args.firstTiles[move];
      sums[args.moves[move].group] += sumTile(args.moves[move], hashSpanOf(args.moves[move], tile));
    }
  });
}

cudaError_t launchCompareHashes(const CompareArgs& args, cudaStream_t stream) {
  return fake::launch(stream, [args] {
    if (!mustSkip(args.status, args.words)) compareAll(args);
  });
}

cudaError_t preloadHashes() {
  return cudaSuccess;
}

}  // namespace nccl_ext

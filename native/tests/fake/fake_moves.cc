// SPDX-License-Identifier: Apache-2.0
// The kernels of runtime/moves.cu on a host thread: the same guard, plain memcpy and memset.
#include "runtime/moves.hpp"

#include <cstring>

#include "tests/fake/fake_cudart.hpp"

namespace nccl_ext {
namespace {

bool mustSkip(const Guard& guard, Skipped what) {
  const ErrorCode reason = skipReason(guard);
  if (reason != ErrorCode::kNone) reportSkipped(guard, reason, what);
  return reason != ErrorCode::kNone;
}

}  // namespace

cudaError_t launchFill(const Guard& guard, void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return fake::launch(stream, [=] {
    if (!mustSkip(guard, Skipped::kUntouched)) std::memset(to, value, bytes);
  });
}

cudaError_t launchCopy(const Guard& guard, void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  return fake::launch(stream, [=] {
    if (!mustSkip(guard, Skipped::kUntouched)) std::memcpy(to, from, bytes);
  });
}

cudaError_t launchNote(const Guard& guard, cudaStream_t stream) {
  return fake::launch(stream, [=] { (void)mustSkip(guard, Skipped::kRanAllTheSame); });
}

cudaError_t preloadMoves() {
  return cudaSuccess;
}

}  // namespace nccl_ext

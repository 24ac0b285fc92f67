// SPDX-License-Identifier: Apache-2.0
#include "m2n/launch_execution.hpp"

#include "m2n/gate.hpp"
#include "m2n/hash.hpp"
#include "m2n/transfer.hpp"

namespace nccl_ext {
namespace {

cudaError_t launchHashOf(HashArgs args, const LaunchPlace& place, int ctas, cudaStream_t stream) {
  if (args.words == 0) return cudaSuccess;
  args.status = place.status;
  args.rankWords = place.words;
  return launchHash(args, ctas, stream);
}

cudaError_t launchStage(const TransferArgs& args, const std::optional<CopyGraph>& engines, cudaStream_t stream,
                        bool captures) {
  if (!engines) return launchTransfer(args, stream);
  cudaError_t result = launchGate(args, stream);
  if (result == cudaSuccess) result = engines->enqueue(stream, captures);
  return result == cudaSuccess ? launchSettle(args, engines->bytes(), stream) : result;
}

}  // namespace

int entriesOf(const DeviceProgram& program) {
  int entries = program.stageCount + (program.compare ? program.stageCount + 3 : 0) + 1;
  for (const auto& engines : program.engines) entries += engines ? 2 : 0;
  return entries;
}

cudaError_t launchExecution(const DeviceProgram& program, const LaunchPlace& place, int ctas, cudaStream_t stream,
                            bool captures) {
  cudaError_t result = cudaSuccess;
  std::optional<CompareArgs> compare = program.compare;
  if (compare) {
    compare->counts = place.counts;
    compare->status = place.status;
    compare->words = place.words;
    result = launchClearHashes(*compare, stream);
  }
  for (int stage = 0; stage < program.stageCount; stage++) {
    if (result == cudaSuccess && compare) result = launchHashOf(program.sent[stage], place, ctas, stream);
    TransferArgs args = program.stages[stage];
    args.counts = place.counts;
    args.status = place.status;
    args.words = place.words;
    args.timeoutNs = place.timeoutNs;
    if (result == cudaSuccess) result = launchStage(args, program.engines[stage], stream, captures);
  }
  if (result == cudaSuccess && compare) result = launchHashOf(program.received, place, ctas, stream);
  return result == cudaSuccess && compare ? launchCompareHashes(*compare, stream) : result;
}

}  // namespace nccl_ext

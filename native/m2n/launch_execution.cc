// SPDX-License-Identifier: Apache-2.0
#include "m2n/launch_execution.hpp"

#include "m2n/gate.hpp"
#include "m2n/hash.hpp"
#include "m2n/transfer.hpp"
#include "runtime/cuda_error.hpp"

namespace nccl_ext {
namespace {

cudaError_t launchHashOf(HashArgs args, const LaunchPlace& place, int ctas, cudaStream_t stream) {
  if (args.tiles == 0) return cudaSuccess;
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

TransferArgs launched(TransferArgs args, const LaunchPlace& place) {
  args.counts = place.counts;
  args.status = place.status;
  args.words = place.words;
  args.timeoutNs = place.timeoutNs;
  return args;
}

}  // namespace

int entriesOf(const DeviceProgram& program) {
  // NCCL orders its kernel after what it does on streams of its own.
  constexpr int kGroupEntries = 4;
  const auto rounds = static_cast<int>(program.rounds[0].size() + program.rounds[1].size());
  int entries = program.stageCount + (program.compare ? program.stageCount + 3 : 0) + 1 + rounds * (2 + kGroupEntries);
  for (const auto& engines : program.engines) entries += engines ? 2 : 0;
  return entries;
}

Status launchExecution(const DeviceProgram& program, const LaunchPlace& place, int ctas, cudaStream_t stream,
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
    if (result == cudaSuccess)
      result = launchStage(launched(program.stages[stage], place), program.engines[stage], stream, captures);
    for (const SentRound& round : program.rounds[stage]) {
      if (result == cudaSuccess) result = launchTransfer(launched(round.pack, place), stream);
      if (result != cudaSuccess) break;
      if (const Status sent = place.sends.exchange(round.group, stream, kTransferOp); !sent) return sent;
      result = launchTransfer(launched(round.unpack, place), stream);
    }
  }
  if (result == cudaSuccess && compare) result = launchHashOf(program.received, place, ctas, stream);
  if (result == cudaSuccess && compare) result = launchCompareHashes(*compare, stream);
  return result == cudaSuccess ? ok() : Status(cudaFailure(result, kTransferOp, kTransferOp));
}

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
// gate, settle: one stage of a transfer on one rank around copies by copy engines.
// flow    gate: thread 0 asks whether the stage may run -> all threads grant this rank's senders and wait for its receivers | copies, where
//         state->failed is 0 | settle: all threads tell the receivers and wait for the senders -> thread 0 ends the stage
// roles   one CTA each; thread i serves peers i, i + threads, ...
// edges   T1 (m2n/shared/transfer.hpp), T2 (m2n/shared/transfer.hpp). The stream's order spreads the grants to the copies, and the copies to
//         the release of the arrivals
// limits  as transfer (m2n/transfer.cu)
// failure a wait expires or is stopped -> record, drained, no copies, no arrivals; the epoch advances all the same
#include "m2n/gate.hpp"
#include "m2n/shared/transfer.hpp"
#include "runtime/preload.hpp"
#include "runtime/ptx.cuh"

namespace nccl_ext {
namespace {

constexpr int kThreads = 128;

struct SharedStorage {
  std::uint64_t epoch;
  bool runs;
  int firstMissing;  // smallest index of a peer that did not come
  int missing;
  int end;  // WaitEnd of the waits that failed
};

// Thread 0 before the first CTA barrier.
__device__ void open(const TransferArgs& args, SharedStorage& shared) {
  shared.epoch = args.state->epoch + 1;
  shared.firstMissing = args.size;
  shared.missing = 0;
  shared.end = static_cast<int>(WaitEnd::kArrived);
}

__device__ void note(SharedStorage& shared, int index, WaitEnd end) {
  if (end == WaitEnd::kArrived) return;
  atomicMin(&shared.firstMissing, index);
  atomicAdd(&shared.missing, 1);
  atomicMax(&shared.end, static_cast<int>(end));
}

__global__ void __launch_bounds__(kThreads) gateKernel(const __grid_constant__ TransferArgs args) {
  __shared__ SharedStorage shared;
  if (threadIdx.x == 0) {
    open(args, shared);
    shared.runs = mayRun(args, skipReason(guardOf(args)));
  }
  __syncthreads();
  if (!shared.runs) return;
  const std::uint64_t epoch = shared.epoch;
  for (int i = threadIdx.x; i < args.granteeCount && args.stage == 0; i += kThreads)
    grant(args, args.grantees[i], epoch);
  for (int i = threadIdx.x; i < args.receiverCount; i += kThreads)
    note(shared, i, awaitGrant(args, args.receivers[i], epoch, [] { return ptx::globaltimer(); }));
  __syncthreads();
  if (threadIdx.x != 0 || shared.missing == 0) return;
  const int peer = args.receivers[shared.firstMissing];
  failTransfer(args, static_cast<WaitEnd>(shared.end), peer, shared.missing, epoch,
               peek<kSystem>(args.controls[args.rank][grantCell(peer)].value));
}

__global__ void __launch_bounds__(kThreads)
    settleKernel(const __grid_constant__ TransferArgs args, const std::uint64_t bytes) {
  __shared__ SharedStorage shared;
  if (threadIdx.x == 0) {
    open(args, shared);
    shared.runs = peek<kDevice>(args.state->failed) == 0;
    // For peers that wait too.
    if (shared.runs) add<kSystem>(args.controls[args.rank][progressCell(args.size)].value, bytes);
    closeStage(args);
  }
  __syncthreads();
  const std::uint64_t epoch = shared.epoch;
  if (shared.runs) {
    for (int i = threadIdx.x; i < args.receiverCount; i += kThreads) arrive(args, args.receivers[i], epoch);
    for (int i = threadIdx.x; i < args.senderCount; i += kThreads)
      note(shared, i, awaitArrival(args, args.senders[i], epoch, [] { return ptx::globaltimer(); }));
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (shared.missing > 0) {
    const int peer = args.senders[shared.firstMissing];
    TransferCell& cell = args.controls[args.rank][arrivalCell(args.size, args.stage, peer)];
    failTransfer(args, static_cast<WaitEnd>(shared.end), peer, shared.missing, epoch, peek<kSystem>(cell.value));
  }
  endStage(args, epoch, args.state->failed != 0, args.state->completed);
}

}  // namespace

cudaError_t launchGate(const TransferArgs& args, cudaStream_t stream) {
  gateKernel<<<1, kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

cudaError_t launchSettle(const TransferArgs& args, std::uint64_t bytes, cudaStream_t stream) {
  settleKernel<<<1, kThreads, 0, stream>>>(args, bytes);
  return cudaGetLastError();
}

cudaError_t preloadGate() {
  return preloadKernels(gateKernel, settleKernel);
}

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
// m2n_smoke: moves boxes of a matrix from ranks that hold its rows to ranks that hold its columns.
// flow    table of strided moves -> source rows into the destination's window, 16 bytes per thread, through the peer
// table roles   a rank sends, receives, or both, as its lists say | CTA 0 grants, and waits at the end | all CTAs copy
// edges   E1 grant    word itself: the destination's stream is done with the epoch before; release.system by one thread
//                     per source -> acquire.system by one thread per destination of every CTA, CTA barrier
//         E2 arrival  CTA barrier, release.system by one thread per destination to arrivals[source][cta]
//                     -> acquire.system by CTA 0; the kernel's end orders the stream's next work
// reuse   data: after the next E1. Flags count up and are compared on the circle.
// limits  rows of a move, strides and offsets are multiples of 16 bytes
// failure see kernel.cuh R6; a move that ends outside the destination is ERR_INVALID_ARGUMENT and is left out
#include "smoke.cuh"

namespace smoke {
namespace {

using namespace nccl_ext;

// 64 bits per field, as the host writes them. Bytes.
struct Move {
  std::uint64_t peer;
  std::uint64_t from;  // offset into the source
  std::uint64_t to;    // offset into the peer's data
  std::uint64_t rows, rowBytes, fromStride, toStride;
};

struct M2nJob {
  const std::uint8_t* source;
  const Move* moves;
  const std::uint64_t* receivers;  // ranks that this one sends to
  const std::uint64_t* senders;    // ranks that send to this one
  Epoch* epoch;
  std::uint8_t* scratch;
  std::uint64_t plantBytes;  // of scratch, for plant()
  std::uint64_t numMoves, numReceivers, numSenders, dataBytes;
  // Offsets into every rank's window.
  std::uint64_t grantsAt;    // [destination] epochs
  std::uint64_t arrivalsAt;  // [source][cta] epochs
  std::uint64_t dataAt;      // [dataBytes]
};

struct SharedStorage {
  Visit visit;
};

__device__ std::uint64_t* flagsAt(std::uint8_t* window, std::uint64_t offset) {
  return reinterpret_cast<std::uint64_t*>(window + offset);
}

__device__ void grant(const SharedStorage& shared, std::uint8_t* const* windows, const M2nJob& job,
                      const KernelGuard& guard) {
  for (int i = threadIdx.x; i < job.numSenders; i += blockDim.x)
    publish<kSystem>(flagsAt(windows[job.senders[i]], job.grantsAt)[guard.rank], shared.visit.epoch);  // E1 release
}

__device__ bool awaitGrants(SharedStorage& shared, std::uint8_t* const* windows, const M2nJob& job,
                            const KernelGuard& guard) {
  std::uint64_t* const grants = flagsAt(windows[guard.rank], job.grantsAt);
  return waitAll(shared.visit, guard, grants, static_cast<int>(job.numReceivers), 1,
                 [&](int i) { return static_cast<int>(job.receivers[i]); });  // E1 acquire
}

__device__ void copy(const Move& move, const M2nJob& job, std::uint8_t* window) {
  const std::uint64_t perRow = move.rowBytes / sizeof(uint4), units = move.rows * perRow;
  for (std::uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < units; i += gridDim.x * blockDim.x) {
    const std::uint64_t row = i / perRow, column = i % perRow * sizeof(uint4);
    const auto* from = reinterpret_cast<const uint4*>(job.source + move.from + row * move.fromStride + column);
    auto* to = reinterpret_cast<uint4*>(window + job.dataAt + move.to + row * move.toStride + column);
    __stcs(to, __ldcs(from));
  }
}

__device__ void sendMoves(std::uint8_t* const* windows, const M2nJob& job, const KernelGuard& guard) {
  for (std::uint64_t i = 0; i < job.numMoves; i++) {
    const Move move = job.moves[i];
    const std::uint64_t end = move.rows == 0 ? 0 : move.to + (move.rows - 1) * move.toStride + move.rowBytes;
    if (end <= job.dataBytes)
      copy(move, job, windows[move.peer]);
    else if (threadIdx.x == 0)
      report(guard, ErrorCode::kInvalidArgument, static_cast<int>(move.peer), job.dataBytes, end);
  }
}

__device__ void publishArrival(const SharedStorage& shared, std::uint8_t* const* windows, const M2nJob& job,
                               const KernelGuard& guard) {
  __syncthreads();
  for (int i = threadIdx.x; i < job.numReceivers; i += blockDim.x) {
    // E2 release
    publish<kSystem>(flagsAt(windows[job.receivers[i]], job.arrivalsAt)[guard.rank * gridDim.x + blockIdx.x],
                     shared.visit.epoch);
  }
}

__device__ void step(SharedStorage& shared, std::uint8_t* const* windows, const M2nJob& job, const KernelGuard& guard) {
  if (blockIdx.x == 0) grant(shared, windows, job, guard);
  if (!awaitGrants(shared, windows, job, guard)) return;
  sendMoves(windows, job, guard);
  publishArrival(shared, windows, job, guard);
  if (blockIdx.x != 0) return;
  std::uint64_t* const arrivals = flagsAt(windows[guard.rank], job.arrivalsAt);
  waitAll(shared.visit, guard, arrivals, static_cast<int>(job.numSenders), gridDim.x,
          [&](int i) { return static_cast<int>(job.senders[i]); });  // E2 acquire
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    m2n_step(std::uint8_t* const* windows, const M2nJob* job, KernelGuard guard) {
  __shared__ SharedStorage shared;
  plant(job->scratch, job->plantBytes);
  if (enter(shared.visit, *job->epoch, guard)) step(shared, windows, *job, guard);
  leave(*job->epoch);
}

// A failure of the user's own: reports two numbers about a rank, and nothing else.
extern "C" __global__ void complain(std::uint64_t peer, std::uint64_t expected, std::uint64_t seen, KernelGuard guard) {
  if (blockIdx.x == 0 && threadIdx.x == 0) report(guard, ErrorCode::kKernel, static_cast<int>(peer), expected, seen);
}

}  // namespace smoke

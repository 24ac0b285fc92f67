// SPDX-License-Identifier: Apache-2.0
// ep_smoke: sends every token to the experts that its routing names, wherever they live, in the order of (source,
// token). flow    routing -> counts[source][expert] as tagged words, to all peers -> prefix over sources = slot of each
// row
//         -> tokens[t] into the peer's rows[expert][slot], 16 bytes per lane, one (token, k) pair per warp
// roles   CTA 0 publishes counts, and waits at the end | all CTAs wait for counts and send pairs cta, cta + ctas, ...
// edges   E1 counts  the word itself, epoch << 32 | count: release.system by one thread per word -> acquire.system by
//                    one thread per word of every CTA, CTA barrier. It grants too: a rank publishes it after its stream
//                    has read what arrived before, and nobody writes rows before every rank's counts have come.
//         E2 rows    CTA barrier, release.system by one thread per peer to arrivals[source][cta] -> acquire.system by
//                    CTA 0; the kernel's end orders the stream's next work
// reuse   two halves of counts by epoch: a peer may be one epoch behind, none is two behind (E2 of the epoch between)
// limits  kMaxPairs, kMaxWords; hidden % 16 == 0; 16-byte rows      failure  see kernel.cuh R6; an expert with more
// rows
//         than its capacity is ERR_OUT_OF_BOUNDS on every rank, and no rank sends rows in that epoch
#include "smoke.cuh"

namespace smoke {
namespace {

using namespace nccl_ext;

constexpr int kMaxPairs = 2048;  // tokens x top-k of a rank
constexpr int kMaxWords = 1024;  // ranks x experts

// Written by the host (smoke-jobs.mjs), in device memory: 64 bits per field.
struct EpJob {
  const std::uint8_t* tokens;   // [token][hidden]
  const std::int32_t* routing;  // [token][k] expert
  Epoch* epoch;
  std::uint64_t* totals;  // out: [local expert] rows
  std::uint8_t* scratch;
  std::uint64_t plantBytes;  // of scratch, for plant()
  std::uint64_t numTokens, topK, numExperts, capacity, hidden;
  // Offsets into every rank's window.
  std::uint64_t countsAt;    // [half][source][expert] tagged words
  std::uint64_t arrivalsAt;  // [source][cta] epochs
  std::uint64_t originsAt;   // [local expert][slot] source << 32 | pair
  std::uint64_t rowsAt;      // [local expert][slot][hidden]
};

struct SharedStorage {
  Visit visit;
  std::int32_t experts[kMaxPairs];  // [token][k]
  std::uint32_t counts[kMaxWords];  // [source][expert]
};

template <class T>
__device__ T* at(std::uint8_t* window, std::uint64_t offset) {
  return reinterpret_cast<T*>(window + offset);
}

__device__ std::uint64_t halfOf(const EpJob& job, const KernelGuard& guard, std::uint64_t epoch) {
  return job.countsAt + epoch % 2 * guard.size * job.numExperts * sizeof(std::uint64_t);
}

__device__ void loadRouting(SharedStorage& shared, const EpJob& job) {
  for (int i = threadIdx.x; i < job.numTokens * job.topK; i += blockDim.x) shared.experts[i] = job.routing[i];
  __syncthreads();
}

// Pairs before `end` that go to `expert`.
__device__ std::uint32_t pairsBefore(const SharedStorage& shared, int end, int expert, int first, int step) {
  std::uint32_t count = 0;
  for (int i = first; i < end; i += step) count += shared.experts[i] == expert;
  return count;
}

__device__ void publishCounts(const SharedStorage& shared, std::uint8_t* const* windows, const EpJob& job,
                              const KernelGuard& guard) {
  const int pairs = static_cast<int>(job.numTokens * job.topK), experts = static_cast<int>(job.numExperts);
  const std::uint64_t half = halfOf(job, guard, shared.visit.epoch);
  for (int expert = threadIdx.x; expert < experts; expert += blockDim.x) {
    const std::uint64_t word = shared.visit.epoch << 32 | pairsBefore(shared, pairs, expert, 0, 1);
    for (int peer = 0; peer < guard.size; peer++) {
      // E1 release
      publish<kSystem>(at<std::uint64_t>(windows[peer], half)[guard.rank * experts + expert], word);
    }
  }
}

// Whether every rank's counts have come; they are in shared memory then.
__device__ bool awaitCounts(SharedStorage& shared, std::uint8_t* const* windows, const EpJob& job,
                            const KernelGuard& guard) {
  const int experts = static_cast<int>(job.numExperts);
  std::uint64_t* const words = at<std::uint64_t>(windows[guard.rank], halfOf(job, guard, shared.visit.epoch));
  for (int i = threadIdx.x; i < guard.size * experts; i += blockDim.x) {
    const Arrival arrival = wait(guard, words[i], shared.visit.epoch << 32, i / experts);  // E1 acquire
    if (!arrival) atomicOr(&shared.visit.ended, 1);
    shared.counts[i] = static_cast<std::uint32_t>(arrival.seen);
  }
  __syncthreads();
  return shared.visit.ended == 0;
}

__device__ std::uint32_t rowsBefore(const SharedStorage& shared, int experts, int expert, int source) {
  std::uint32_t rows = 0;
  for (int one = 0; one < source; one++) rows += shared.counts[one * experts + expert];
  return rows;
}

// Whether all experts have room for their rows; the same answer on every rank and CTA.
__device__ bool fits(const SharedStorage& shared, const EpJob& job, const KernelGuard& guard) {
  const int experts = static_cast<int>(job.numExperts), own = experts / guard.size;
  bool over = false;
  for (int expert = threadIdx.x; expert < experts; expert += blockDim.x) {
    const std::uint32_t rows = rowsBefore(shared, experts, expert, guard.size);
    if (blockIdx.x == 0 && expert / own == guard.rank) job.totals[expert % own] = rows;
    if (rows <= job.capacity) continue;
    over = true;
    if (blockIdx.x == 0) report(guard, ErrorCode::kOutOfBounds, expert / own, job.capacity, rows);
  }
  return !__syncthreads_or(over);
}

__device__ void sendRows(const SharedStorage& shared, std::uint8_t* const* windows, const EpJob& job,
                         const KernelGuard& guard) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int pairs = static_cast<int>(job.numTokens * job.topK), experts = static_cast<int>(job.numExperts);
  const int own = experts / guard.size;
  for (int pair = blockIdx.x + gridDim.x * warp; pair < pairs; pair += gridDim.x * kWarps) {
    const int expert = shared.experts[pair];
    const std::uint32_t slot = rowsBefore(shared, experts, expert, guard.rank) +
                               __reduce_add_sync(~0u, pairsBefore(shared, pair, expert, lane, 32));
    std::uint8_t* const window = windows[expert / own];
    const std::uint64_t row = expert % own * job.capacity + slot;
    const uint4* const from = reinterpret_cast<const uint4*>(job.tokens + pair / job.topK * job.hidden);
    uint4* const to = at<uint4>(window, job.rowsAt + row * job.hidden);
    for (int i = lane; i < job.hidden / sizeof(uint4); i += 32) __stcs(to + i, __ldcs(from + i));
    if (lane == 0) at<std::uint64_t>(window, job.originsAt)[row] = static_cast<std::uint64_t>(guard.rank) << 32 | pair;
  }
}

__device__ void publishArrival(const SharedStorage& shared, std::uint8_t* const* windows, const EpJob& job,
                               const KernelGuard& guard) {
  __syncthreads();
  for (int peer = threadIdx.x; peer < guard.size; peer += blockDim.x) {
    // E2 release
    publish<kSystem>(at<std::uint64_t>(windows[peer], job.arrivalsAt)[guard.rank * gridDim.x + blockIdx.x],
                     shared.visit.epoch);
  }
}

__device__ void dispatch(SharedStorage& shared, std::uint8_t* const* windows, const EpJob& job,
                         const KernelGuard& guard) {
  loadRouting(shared, job);
  if (blockIdx.x == 0) publishCounts(shared, windows, job, guard);
  if (!awaitCounts(shared, windows, job, guard)) return;
  if (fits(shared, job, guard)) sendRows(shared, windows, job, guard);
  publishArrival(shared, windows, job, guard);
  if (blockIdx.x != 0) return;
  std::uint64_t* const arrivals = at<std::uint64_t>(windows[guard.rank], job.arrivalsAt);
  waitAll(shared.visit, guard, arrivals, guard.size, gridDim.x, [](int rank) { return rank; });  // E2 acquire
}

}  // namespace

// Dynamic shared memory: at least sizeof(SharedStorage), 12.3 KB.
extern "C" __global__ void __launch_bounds__(kThreads)
    ep_dispatch(std::uint8_t* const* windows, const EpJob* job, KernelGuard guard) {
  extern __shared__ __align__(16) std::uint8_t memory[];
  SharedStorage& shared = *reinterpret_cast<SharedStorage*>(memory);
  plant(job->scratch, job->plantBytes);
  if (enter(shared.visit, *job->epoch, guard)) dispatch(shared, windows, *job, guard);
  leave(*job->epoch);
}

}  // namespace smoke

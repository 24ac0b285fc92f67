// SPDX-License-Identifier: Apache-2.0
// The bulk copy engine in functions named after PTX words. Only for code behind `if constexpr (kBulkCopy)`; elsewhere they are empty.
//
// Addresses and sizes are multiples of 16 bytes. Loads count their bytes at a barrier in shared memory (mbarrier); stores belong
// to the thread that starts them and are waited for in groups.
#pragma once

#include <cstdint>

namespace nccl_ext::ptx {

__device__ inline std::uint32_t sharedAddress(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// True for one lane of a converged warp, always the same one. Behind it the compiler starts a copy by one instruction; behind any
// other condition by a loop over lanes of about 100 cycles for each.
__device__ inline bool electSync() {
  std::uint32_t elected = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n\t"
      ".reg .pred elected;\n\t"
      "elect.sync _|elected, 0xffffffff;\n\t"
      "selp.u32 %0, 1, 0, elected;\n\t"
      "}"
      : "=r"(elected)::"memory");
#endif
  return elected != 0;
}

// For one arrival per phase. One thread, before a CTA barrier.
__device__ inline void mbarrierInit(std::uint64_t& barrier) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], 1;\n\t"
      "fence.mbarrier_init.release.cluster;" ::"r"(sharedAddress(&barrier))
      : "memory");
#endif
}

// The arrival of a phase, which ends when `bytes` bytes have come as well.
__device__ inline void mbarrierArriveExpectTx(std::uint64_t& barrier, std::uint32_t bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sharedAddress(&barrier)), "r"(bytes)
               : "memory");
#endif
}

// `bytes` more bytes that a phase waits for, whose arrival is still to come.
__device__ inline void mbarrierExpectTx(std::uint64_t& barrier, std::uint32_t bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(sharedAddress(&barrier)), "r"(bytes)
               : "memory");
#endif
}

// The arrival of a phase.
__device__ inline void mbarrierArrive(std::uint64_t& barrier) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(sharedAddress(&barrier)) : "memory");
#endif
}

// Whether the phase of this parity is over; waits for a time that the hardware limits.
__device__ inline bool mbarrierTryWait(std::uint64_t& barrier, std::uint32_t parity) {
  std::uint32_t over = 1;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n\t"
      ".reg .pred over;\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n\t"
      "selp.u32 %0, 1, 0, over;\n\t"
      "}"
      : "=r"(over)
      : "r"(sharedAddress(&barrier)), "r"(parity)
      : "memory");
#endif
  return over != 0;
}

// Global to shared memory; `to` and `barrier` are addresses there.
__device__ inline void cpAsyncBulkLoad(std::uint32_t to, std::uint64_t from, std::uint32_t bytes,
                                       std::uint32_t barrier) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
#endif
}

// Shared to global memory; `from` is an address in shared memory.
__device__ inline void cpAsyncBulkStore(std::uint64_t to, std::uint32_t from, std::uint32_t bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
               : "memory");
#endif
}

// Ends this thread's group of stores.
__device__ inline void cpAsyncBulkCommitGroup() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}

// Until all but the last kPending groups of this thread have read their shared memory.
template <int kPending>
__device__ inline void cpAsyncBulkWaitGroupRead() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
#endif
}

// Until all stores of this thread are made.
__device__ inline void cpAsyncBulkWaitGroup() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
}

// Orders this thread's accesses by the bulk copy engine with its ordinary ones, both ways.
__device__ inline void fenceProxyAsync() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async;" ::: "memory");
#endif
}

}  // namespace nccl_ext::ptx

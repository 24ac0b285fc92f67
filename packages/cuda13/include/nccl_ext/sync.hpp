// SPDX-License-Identifier: Apache-2.0
// Flags between threads, GPUs and the host: the only place that names a memory order.
//
// A writer makes its data visible with publish (store, release) and a reader finds it with observe (load, acquire);
// peek, put, add and take (relaxed) order nothing. countIn is both ends at once, for many writers of one word. claim (acquire) is won
// by one of many threads, behind whoever published the 0. The scope is the farthest reader's: device inside a GPU, system for
// a peer or the host.
#pragma once

#include <cstdint>

#include <cuda/atomic>

#include <nccl_ext/qualifiers.hpp>

namespace nccl_ext {

inline constexpr cuda::thread_scope kDevice = cuda::thread_scope_device;
inline constexpr cuda::thread_scope kSystem = cuda::thread_scope_system;

template <cuda::thread_scope Scope, class Word>
NCCL_EXT_HD inline void publish(Word& word, Word value) {
  cuda::atomic_ref<Word, Scope>(word).store(value, cuda::std::memory_order_release);
}

template <cuda::thread_scope Scope, class Word>
NCCL_EXT_HD inline Word observe(Word& word) {
  return cuda::atomic_ref<Word, Scope>(word).load(cuda::std::memory_order_acquire);
}

template <cuda::thread_scope Scope, class Word>
NCCL_EXT_HD inline Word peek(Word& word) {
  return cuda::atomic_ref<Word, Scope>(word).load(cuda::std::memory_order_relaxed);
}

// Adds one for what this thread has done before, and sees what all others did before theirs; the number of others.
template <cuda::thread_scope Scope, class Word>
NCCL_EXT_HD inline Word countIn(Word& word) {
  return cuda::atomic_ref<Word, Scope>(word).fetch_add(1, cuda::std::memory_order_acq_rel);
}

// Stores for a reader that takes nothing but this word from it.
template <cuda::thread_scope Scope, class Word>
NCCL_EXT_HD inline void put(Word& word, Word value) {
  cuda::atomic_ref<Word, Scope>(word).store(value, cuda::std::memory_order_relaxed);
}

// Adds to a count that orders nothing.
template <cuda::thread_scope Scope, class Word>
NCCL_EXT_HD inline void add(Word& word, Word value) {
  cuda::atomic_ref<Word, Scope>(word).fetch_add(value, cuda::std::memory_order_relaxed);
}

// Adds to a count and gives what it was: numbers for many takers, each of them once.
template <cuda::thread_scope Scope, class Word>
NCCL_EXT_HD inline Word take(Word& word, Word number) {
  return cuda::atomic_ref<Word, Scope>(word).fetch_add(number, cuda::std::memory_order_relaxed);
}

// Turns `word` from 0 into 1; whether this thread did. What was read before the 0 was published stays before what the
// winner writes.
template <cuda::thread_scope Scope>
NCCL_EXT_HD inline bool claim(std::int32_t& word) {
  std::int32_t expected = 0;
  return cuda::atomic_ref<std::int32_t, Scope>(word).compare_exchange_strong(expected, 1,
                                                                             cuda::std::memory_order_acquire);
}

// Epochs are free-running and compared on the circle: `epoch` has come when it is at most 2^63 - 1 behind `seen`.
NCCL_EXT_HD inline constexpr bool hasReached(std::uint64_t seen, std::uint64_t epoch) {
  return static_cast<std::int64_t>(seen - epoch) >= 0;
}

static_assert(hasReached(5, 5) && hasReached(6, 5) && !hasReached(4, 5));
static_assert(hasReached(0, ~0ull) && !hasReached(~0ull, 0), "the comparison survives the wrap");

}  // namespace nccl_ext

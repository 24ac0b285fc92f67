// SPDX-License-Identifier: Apache-2.0
// How a warp sums a tile of runs that convert nothing: vectors of 16 bytes, several under way per lane.
#pragma once

#include "m2n/shared/hash_slot.hpp"

namespace nccl_ext {

// Loads of 16 bytes that a lane has under way: 96 KiB of an SM together, what a lane's registers hold beside the rest.
constexpr int kVectorUnroll = 6;

__device__ inline std::uint32_t hashLane() {
  return threadIdx.x % 32;
}

// Read once: leaves caches to others.
__device__ inline HashVector streamVector(const HashVector* at) {
  const ulonglong2 vector = __ldcs(reinterpret_cast<const ulonglong2*>(at));
  return {vector.x, vector.y};
}

__device__ inline std::uint64_t mixVector(const HashVector& words, std::uint64_t key) {
  return mixWord(words.low + key) + mixWord(words.high + key + kHashStep);
}

// Functions that hold loads in registers are not inlined, so that they do not take registers from each other.

// The vectors of a run that hold whole words of it and of which everything may be read, from `at` on, where the lane's first one is;
// `left` from there. kShifts: words begin `bytes` bytes, 1 to 7, behind multiples of 8, and 8 bytes behind the last vector may be read.
template <bool kShifts, int kUnroll>
__device__ __forceinline__ void sumVectors(const HashVector* at, std::uint32_t left, std::uint64_t key,
                                           std::uint32_t bytes, std::uint64_t& sum) {
  struct Loaded {
    HashVector vector;
    std::uint64_t next;
  };
  const auto load = [](const HashVector* from) {
    if constexpr (kShifts) {
      // The neighbour's vector; in the cache.
      return Loaded{*from, from[1].low};
    } else {
      return Loaded{streamVector(from), 0};
    }
  };
  const auto mix = [bytes](const Loaded& loaded, std::uint64_t key) {
    if constexpr (kShifts) {
      const std::uint32_t in[6] = {
          static_cast<std::uint32_t>(loaded.vector.low),  static_cast<std::uint32_t>(loaded.vector.low >> 32),
          static_cast<std::uint32_t>(loaded.vector.high), static_cast<std::uint32_t>(loaded.vector.high >> 32),
          static_cast<std::uint32_t>(loaded.next),        static_cast<std::uint32_t>(loaded.next >> 32)};
      std::uint32_t out[4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const std::uint32_t low = bytes >= 4 ? in[i + 1] : in[i], high = bytes >= 4 ? in[i + 2] : in[i + 1];
        out[i] = __funnelshift_r(low, high, bytes * 8);  // modulo 32
      }
      return mixVector({std::uint64_t{out[1]} << 32 | out[0], std::uint64_t{out[3]} << 32 | out[2]}, key);
    } else {
      return mixVector(loaded.vector, key);
    }
  };
  Loaded loaded[kUnroll];
#pragma unroll 1
  for (; left > (kUnroll - 1) * 32; left = left > kUnroll * 32 ? left - kUnroll * 32 : 0) {
#pragma unroll
    for (int u = 0; u < kUnroll; u++) loaded[u] = load(at + u * 32);
#pragma unroll
    for (int u = 0; u < kUnroll; u++) sum += mix(loaded[u], key + 64 * kHashStep * u);
    at += kUnroll * 32;
    key += 64 * kHashStep * kUnroll;
  }
  // What is left is under way at once too.
#pragma unroll
  for (int u = 0; u < kUnroll - 1; u++) {
    if (static_cast<std::uint32_t>(u) * 32 < left) loaded[u] = load(at + u * 32);
  }
#pragma unroll
  for (int u = 0; u < kUnroll - 1; u++) {
    if (static_cast<std::uint32_t>(u) * 32 < left) sum += mix(loaded[u], key + 64 * kHashStep * u);
  }
}

static __device__ __noinline__ std::uint64_t sumShifted(const HashVector* at, std::uint32_t left, std::uint64_t key,
                                                        std::uint32_t bytes) {
  std::uint64_t sum = 0;
  sumVectors<true, 4>(at, left, key, bytes, sum);
  return sum;
}

static __device__ __noinline__ std::uint64_t sumEdge(const HashMove& move, std::uint64_t address, std::uint64_t key,
                                                     std::uint64_t slot) {
  return sumSlot<true>(loadSlot<true>(move, address, key, slot));
}

// Slots of a long run one after the other: the first and the last ones byte by byte where they are not whole.
__device__ __forceinline__ void sumLongRun(const HashMove& move, const HashSpan& span, std::uint32_t run,
                                           std::uint64_t& sum) {
  const std::uint64_t address = runAddress(move, run), key = runKey(move, run);
  const auto skew = static_cast<std::uint32_t>(address & 15), bytes = skew & 7;
  // Vectors [begin, end) of the run are whole, and with them what follows where words reach beyond.
  const std::uint64_t first = span.firstSlot, last = first + span.slots, reach = skew + move.inner;
  const std::uint64_t whole = bytes == 0 ? reach / 16 : reach < 8 ? 0 : (reach - 8) / 16;
  const std::uint64_t end = whole < last ? whole : last, begin = first == 0 && skew != 0 ? 1 : first;
  const auto count = end > begin ? static_cast<std::uint32_t>(end - begin) : 0;
  // At most one slot before them and three behind, a lane each.
  const auto before = static_cast<std::uint32_t>(begin - first);
  const std::uint64_t edge = hashLane() < before ? first : (count > 0 ? end : begin) + (hashLane() - before);
  if (edge < last) sum += sumEdge(move, address, key, edge);
  if (count <= hashLane()) return;
  const std::uint64_t lane = begin + hashLane();
  const auto* at = reinterpret_cast<const HashVector*>(address - skew) + lane;
  const std::uint64_t laneKey = key + (lane * 2 - (skew >> 3)) * kHashStep;
  const std::uint32_t left = count - hashLane();
  if (bytes == 0)
    sumVectors<false, kVectorUnroll>(at, left, laneKey, 0, sum);
  else
    sum += sumShifted(at, left, laneKey, bytes);
}

// Short runs, or a part of one, which lanes share slot by slot: `Way` says how a slot is loaded and summed. Runs of one row lie at
// one distance, so that a lane goes from slot to slot by additions.
template <int kUnroll, class Way>
__device__ __forceinline__ std::uint64_t sumShared(const HashMove& move, const HashSpan& span, const Way& way) {
  const std::uint64_t stride = static_cast<std::uint64_t>(move.strides[2]), keyStride = move.runWords * kHashStep;
  const std::uint32_t slots = span.slots, perRow = move.loop2.divisor;
  const std::uint32_t skip = move.perRun.quotient(hashLane()), stepRuns = move.perRun.quotient(32);
  const std::uint32_t stepSlots = 32 - stepRuns * slots;
  std::uint64_t sum = 0;
#pragma unroll 1
  for (std::uint32_t run = span.firstRun, end = run + span.runs, runs; run < end; run += runs) {
    const std::uint32_t inRow = perRow - (run - move.loop2.quotient(run) * perRow);
    runs = end - run < inRow ? end - run : inRow;
    const std::uint32_t total = runs * slots;
    std::uint64_t address = runAddress(move, run) + skip * stride, key = runKey(move, run) + skip * keyStride;
    std::uint32_t slot = hashLane() - skip * slots;
#pragma unroll 1
    for (std::uint32_t base = hashLane(); base < total; base += kUnroll * 32) {
      typename Way::Loaded loaded[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; u++) {
        if (base + u * 32 < total) loaded[u] = way.load(address, key, slot);
        slot += stepSlots;
        address += stepRuns * stride;
        key += stepRuns * keyStride;
        if (slot >= slots) {
          slot -= slots;
          address += stride;
          key += keyStride;
        }
      }
#pragma unroll
      for (int u = 0; u < kUnroll; u++) {
        if (base + u * 32 < total) sum += way.sum(loaded[u]);
      }
    }
  }
  return sum;
}

// Slots that are whole vectors.
struct SharedVectors {
  std::uint32_t firstSlot;

  struct Loaded {
    HashVector vector;
    std::uint64_t key;
  };
  __device__ Loaded load(std::uint64_t address, std::uint64_t key, std::uint32_t slot) const {
    slot += firstSlot;
    return {streamVector(reinterpret_cast<const HashVector*>(address) + slot), key + slot * (2 * kHashStep)};
  }
  __device__ std::uint64_t sum(const Loaded& loaded) const { return mixVector(loaded.vector, loaded.key); }
};

// Any slots; as loadSlot and sumSlot, by 32-bit numbers.
template <bool kShifts>
struct SharedWords {
  std::uint64_t begin, end;  // of what may be read
  std::int32_t inner;        // bytes of a run
  std::uint32_t firstSlot;

  struct Loaded {
    HashVector vector;
    std::uint64_t next;
    std::uint64_t key;
    std::int32_t left;  // bytes of the run from the first word on
    std::uint32_t shift;
  };
  __device__ Loaded load(std::uint64_t address, std::uint64_t key, std::uint32_t slot) const {
    const auto skew = static_cast<std::uint32_t>(address) & 15;
    const auto first = static_cast<std::int32_t>(2 * (slot + firstSlot) - (skew >> 3));
    const std::uint64_t at = address - skew + 16 * (slot + firstSlot);
    Loaded out;
    out.vector = vectorWithin(at, begin, end);
    out.key = key + static_cast<std::uint64_t>(std::int64_t{first}) * kHashStep;
    out.left = inner - 8 * first;
    out.shift = kShifts ? (skew & 7) * 8 : 0;
    out.next = 0;
    if (kShifts && out.shift != 0 && out.left > static_cast<std::int32_t>(16 - (skew & 7)))
      out.next = loadWithin(at + 16, begin, end);
    return out;
  }
  __device__ std::uint64_t sum(const Loaded& loaded) const {
    HashSlot slot;
    slot.vector = loaded.vector;
    slot.next = loaded.next;
    slot.key = loaded.key;
    slot.shift = loaded.shift;
    // The word before a run's first one is none.
    slot.bytes[0] = loaded.left > inner ? 0 : static_cast<std::uint32_t>(min(max(loaded.left, 0), 8));
    slot.bytes[1] = static_cast<std::uint32_t>(min(max(loaded.left - 8, 0), 8));
    return sumSlot<kShifts>(slot);
  }
};

static __device__ __noinline__ std::uint64_t sumSharedVectors(const HashMove& move, HashSpan span) {
  return sumShared<4>(move, span, SharedVectors{static_cast<std::uint32_t>(span.firstSlot)});
}

template <bool kShifts>
static __device__ __noinline__ std::uint64_t sumSharedWords(const HashMove& move, HashSpan span) {
  const SharedWords<kShifts> way{move.begin, move.end, static_cast<std::int32_t>(move.inner),
                                 static_cast<std::uint32_t>(span.firstSlot)};
  return sumShared<kShifts ? 3 : 4>(move, span, way);
}

// Adds to `sum` what this lane finds; all lanes of a warp.
__device__ __forceinline__ void sumRuns(const HashMove& move, const HashSpan& span, std::uint64_t& sum) {
  if (move.slots >= kLongRunSlots) {
    const std::uint32_t end = span.firstRun + span.runs;
#pragma unroll 1
    for (std::uint32_t run = span.firstRun; run < end; run++) sumLongRun(move, span, run, sum);
  } else if (move.path == HashPath::kBytes) {
    sum += sumSharedWords<true>(move, span);
  } else if (move.path == HashPath::kWords) {
    sum += sumSharedWords<false>(move, span);
  } else {
    sum += sumSharedVectors(move, span);
  }
}

}  // namespace nccl_ext

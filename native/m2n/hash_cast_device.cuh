// SPDX-License-Identifier: Apache-2.0
// How a warp sums a tile of elements as what they become: a lane takes whole words of the destination, several under way.
#pragma once

#include "m2n/hash_runs_device.cuh"

namespace nccl_ext {

// `kBytes` bytes at a multiple of them, or of 16.
template <int kBytes>
struct CastSource {
  static constexpr int kWords = (kBytes + 7) / 8;
  std::uint64_t words[kWords];

  __device__ void load(std::uint64_t at) {
    if constexpr (kBytes >= 16) {
#pragma unroll
      for (int i = 0; i < kBytes / 16; i++) {
        const HashVector vector = streamVector(reinterpret_cast<const HashVector*>(at) + i);
        words[2 * i] = vector.low;
        words[2 * i + 1] = vector.high;
      }
    } else if constexpr (kBytes == 8) {
      words[0] = *reinterpret_cast<const std::uint64_t*>(at);
    } else if constexpr (kBytes == 4) {
      words[0] = *reinterpret_cast<const std::uint32_t*>(at);
    } else {
      words[0] = *reinterpret_cast<const std::uint16_t*>(at);
    }
  }
};

constexpr int castBytesOf(DType type) {
  return type == DType::kF64 ? 8 : type == DType::kF32 ? 4 : type == DType::kF16 || type == DType::kBf16 ? 2 : 1;
}

template <DType kFrom, DType kTo>
struct CastPair {
  static constexpr int kFromBytes = castBytesOf(kFrom), kToBytes = castBytesOf(kTo), kEach = 8 / kToBytes;
  using Source = CastSource<kEach * kFromBytes>;

  __device__ static std::uint64_t convert(const Source& source) {
    std::uint64_t word = 0;
#pragma unroll
    for (int i = 0; i < kEach; i++) {
      const int byte = i * kFromBytes;
      const std::uint64_t bits =
          source.words[byte / 8] >> (byte % 8 * 8) & (~std::uint64_t{0} >> (64 - 8 * kFromBytes));
      word |= castBits(kFrom, kTo, bits) << (8 * kToBytes * i);
    }
    return word;
  }
};

// Whole words whose elements one load reaches.
template <DType kFrom, DType kTo>
struct SharedCasts {
  using Pair = CastPair<kFrom, kTo>;
  static constexpr int kBytes = Pair::kEach * Pair::kFromBytes;
  std::uint64_t firstSlot;
  std::uint64_t whole;  // words of a run

  struct Loaded {
    typename Pair::Source source;
    std::uint64_t key;
    bool isWhole;
  };
  __device__ Loaded load(std::uint64_t address, std::uint64_t key, std::uint32_t slot) const {
    const std::uint64_t index = firstSlot + slot;
    Loaded out;
    out.key = key + index * kHashStep;
    out.isWhole = index < whole;
    if (out.isWhole) out.source.load(address + index * kBytes);
    return out;
  }
  __device__ std::uint64_t sum(const Loaded& loaded) const {
    return loaded.isWhole ? mixWord(Pair::convert(loaded.source) + loaded.key) : 0;
  }
};

// The last word of each run, where it is not whole.
static __device__ __noinline__ std::uint64_t sumCastEnds(const HashMove& move, HashSpan span) {
  std::uint64_t sum = 0;
  const std::uint64_t last = move.runWords - 1;
  if (span.firstSlot + span.slots <= last) return 0;
  for (std::uint32_t i = hashLane(); i < span.runs; i += 32) {
    const std::uint32_t run = span.firstRun + i;
    sum += mixWord(castWord(move, runAddress(move, run), last) + runKey(move, run) + last * kHashStep);
  }
  return sum;
}

template <DType kFrom, DType kTo>
static __device__ __noinline__ std::uint64_t sumCastPair(const HashMove& move, HashSpan span) {
  using Way = SharedCasts<kFrom, kTo>;
  const std::uint64_t whole = move.inner / Way::Pair::kEach;
  return sumShared<Way::kBytes >= 32 ? 2 : 4>(move, span, Way{span.firstSlot, whole});
}

// Any pair, at any address.
struct SharedAnyCast {
  const HashMove& move;
  std::uint64_t firstSlot;

  struct Loaded {
    std::uint64_t word;
    std::uint64_t key;
  };
  __device__ Loaded load(std::uint64_t address, std::uint64_t key, std::uint32_t slot) const {
    const std::uint64_t index = firstSlot + slot;
    return {castWord(move, address, index), key + index * kHashStep};
  }
  __device__ std::uint64_t sum(const Loaded& loaded) const { return mixWord(loaded.word + loaded.key); }
};

static __device__ __noinline__ std::uint64_t sumAnyCast(const HashMove& move, HashSpan span) {
  return sumShared<1>(move, span, SharedAnyCast{move, span.firstSlot});
}

template <DType kFrom, DType kTo>
constexpr std::uint16_t kTransform = castTransform(kFrom, kTo);

// Whether whole words of the move are summed by code of their own.
__device__ inline bool isWholeCast(const HashMove& move) {
  if (move.aligned == 0) return false;
  switch (move.transform) {
    case kTransform<DType::kF32, DType::kBf16>:
    case kTransform<DType::kF32, DType::kF16>:
    case kTransform<DType::kBf16, DType::kF32>:
    case kTransform<DType::kF32, DType::kF8e4m3>:
    case kTransform<DType::kBf16, DType::kF8e4m3>:
      return true;
    default:
      return false;
  }
}

// The pairs that training and inference convert between have code of their own.
__device__ inline std::uint64_t sumWholeCasts(const HashMove& move, const HashSpan& span) {
  switch (move.transform) {
    case kTransform<DType::kF32, DType::kBf16>:
      return sumCastPair<DType::kF32, DType::kBf16>(move, span);
    case kTransform<DType::kF32, DType::kF16>:
      return sumCastPair<DType::kF32, DType::kF16>(move, span);
    case kTransform<DType::kBf16, DType::kF32>:
      return sumCastPair<DType::kBf16, DType::kF32>(move, span);
    case kTransform<DType::kF32, DType::kF8e4m3>:
      return sumCastPair<DType::kF32, DType::kF8e4m3>(move, span);
    default:
      return sumCastPair<DType::kBf16, DType::kF8e4m3>(move, span);
  }
}

// As sumRuns.
__device__ inline std::uint64_t sumCast(const HashMove& move, const HashSpan& span) {
  if (!isWholeCast(move)) return sumAnyCast(move, span);
  const std::uint64_t sum = sumWholeCasts(move, span);
  const std::uint32_t each = 8 / elementBytes(static_cast<DType>((move.transform - 1) % 32));
  return move.inner % each == 0 ? sum : sum + sumCastEnds(move, span);
}

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
// The words of one slot and what they add to a sum: the one reading of a HashMove, by kernels where no faster one fits and by tests.
#pragma once

#include "m2n/shared/cast.hpp"
#include "m2n/shared/hash.hpp"

namespace nccl_ext {

// What a tile hashes: slots [firstSlot, firstSlot + slots) of each run from firstRun on.
struct HashSpan {
  std::uint32_t firstRun;
  std::uint32_t runs;
  std::uint32_t slots;
  std::uint64_t firstSlot;
};

// `tile` counts from the move's first one.
NCCL_EXT_HD inline HashSpan hashSpanOf(const HashMove& move, std::uint32_t tile) {
  const std::uint32_t part = move.segments.quotient(tile);
  const std::uint32_t segment = tile - part * move.segments.divisor;
  const std::uint32_t first = part * move.perTile, left = move.runs - first;
  const std::uint64_t slot = std::uint64_t{segment} * move.segmentSlots, rest = move.slots - slot;
  return {first, left < move.perTile ? left : move.perTile,
          rest < move.segmentSlots ? static_cast<std::uint32_t>(rest) : move.segmentSlots, slot};
}

NCCL_EXT_HD inline std::uint64_t runAddress(const HashMove& move, std::uint32_t run) {
  const std::uint32_t outer = move.loop2.quotient(run), outermost = move.loop1.quotient(outer);
  return move.address + static_cast<std::uint64_t>(move.strides[0]) * outermost +
         static_cast<std::uint64_t>(move.strides[1]) * (outer - outermost * move.loop1.divisor) +
         static_cast<std::uint64_t>(move.strides[2]) * (run - outer * move.loop2.divisor);
}

// Key of the first word of a run.
NCCL_EXT_HD inline std::uint64_t runKey(const HashMove& move, std::uint32_t run) {
  return hashKey(move.number + run * move.runWords);
}

// 16 bytes of memory, little-endian.
struct alignas(16) HashVector {
  std::uint64_t low;
  std::uint64_t high;
};

// The part of the word at a multiple of 8 that lies in [begin, end); 0 elsewhere.
NCCL_EXT_HD inline std::uint64_t loadWithin(std::uint64_t at, std::uint64_t begin, std::uint64_t end) {
  if (at >= begin && at + 8 <= end) return *reinterpret_cast<const std::uint64_t*>(at);
  std::uint64_t word = 0;
  for (std::uint32_t i = 0; i < 8; i++) {
    if (at + i >= begin && at + i < end)
      word |= std::uint64_t{*reinterpret_cast<const std::uint8_t*>(at + i)} << (8 * i);
  }
  return word;
}

NCCL_EXT_HD inline HashVector vectorWithin(std::uint64_t at, std::uint64_t begin, std::uint64_t end) {
  if (at >= begin && at + 16 <= end) return *reinterpret_cast<const HashVector*>(at);
  return {loadWithin(at, begin, end), loadWithin(at + 8, begin, end)};
}

// Two words of a run as they lie in memory. Of each, `bytes` (0 to 8) belong to the run; 0: there is no such word.
struct HashSlot {
  HashVector vector;
  std::uint64_t next;  // what follows the vector, as far as the second word needs it
  std::uint64_t key;   // of the first word
  std::uint32_t shift;
  std::uint32_t bytes[2];
};

NCCL_EXT_HD inline std::uint32_t wordBytes(const HashMove& move, std::uint64_t index) {
  if (index >= move.runWords) return 0;  // one before the run too, which wraps around
  const std::uint64_t left = move.inner - index * 8;
  return left < 8 ? static_cast<std::uint32_t>(left) : 8;
}

// Slot `slot` of the run at `address`, whose first word has key `key`. kShifts: words may begin at any byte.
template <bool kShifts>
NCCL_EXT_HD inline HashSlot loadSlot(const HashMove& move, std::uint64_t address, std::uint64_t key,
                                     std::uint64_t slot) {
  const std::uint64_t at = address / 16 * 16 + slot * 16, first = slot * 2 - (address >> 3 & 1);
  HashSlot out;
  out.shift = kShifts ? static_cast<std::uint32_t>(address & 7) * 8 : 0;
  out.vector = vectorWithin(at, move.begin, move.end);
  out.next = kShifts && out.shift != 0 && at + 16 < move.end ? loadWithin(at + 16, move.begin, move.end) : 0;
  out.key = key + first * kHashStep;
  out.bytes[0] = wordBytes(move, first);
  out.bytes[1] = wordBytes(move, first + 1);
  return out;
}

// `bytes` of a word, 0 above; mixed.
NCCL_EXT_HD inline std::uint64_t mixBytes(std::uint64_t word, std::uint32_t bytes, std::uint64_t key) {
  return bytes == 0 ? 0 : mixWord((word & ~std::uint64_t{0} >> (64 - 8 * bytes)) + key);
}

template <bool kShifts>
NCCL_EXT_HD inline std::uint64_t sumSlot(const HashSlot& slot) {
  std::uint64_t first = slot.vector.low, second = slot.vector.high;
  if (kShifts && slot.shift != 0) {
    first = first >> slot.shift | second << (64 - slot.shift);
    second = second >> slot.shift | slot.next << (64 - slot.shift);
  }
  return mixBytes(first, slot.bytes[0], slot.key) + mixBytes(second, slot.bytes[1], slot.key + kHashStep);
}

NCCL_EXT_HD inline std::uint32_t elementBytes(DType type) {
  switch (type) {
    case DType::kF64:
      return 8;
    case DType::kF32:
      return 4;
    case DType::kF16:
    case DType::kBf16:
      return 2;
    default:
      return 1;
  }
}

NCCL_EXT_HD inline std::uint64_t loadElementBytes(std::uint64_t at, std::uint32_t bytes) {
  if (bytes == 4 && at % 4 == 0) return *reinterpret_cast<const std::uint32_t*>(at);
  if (bytes == 2 && at % 2 == 0) return *reinterpret_cast<const std::uint16_t*>(at);
  std::uint64_t bits = 0;
  for (std::uint32_t i = 0; i < bytes; i++)
    bits |= std::uint64_t{*reinterpret_cast<const std::uint8_t*>(at + i)} << (8 * i);
  return bits;
}

// Word `index` of a run that converts, in bytes of the destination.
NCCL_EXT_HD inline std::uint64_t castWord(const HashMove& move, std::uint64_t address, std::uint64_t index) {
  const auto from = static_cast<DType>((move.transform - 1) / 32), to = static_cast<DType>((move.transform - 1) % 32);
  const std::uint32_t fromBytes = elementBytes(from), toBytes = elementBytes(to), each = 8 / toBytes;
  const std::uint64_t first = index * each, left = move.inner - first;
  std::uint64_t word = 0;
  for (std::uint32_t i = 0; i < each && i < left; i++) {
    const std::uint64_t bits = loadElementBytes(address + (first + i) * fromBytes, fromBytes);
    word |= castBits(from, to, bits) << (8 * toBytes * i);
  }
  return word;
}

// What a tile adds to the sum of its group.
NCCL_EXT_HD inline std::uint64_t sumTile(const HashMove& move, const HashSpan& span) {
  std::uint64_t sum = 0;
  for (std::uint32_t run = span.firstRun; run < span.firstRun + span.runs; run++) {
    const std::uint64_t address = runAddress(move, run), key = runKey(move, run);
    for (std::uint64_t slot = span.firstSlot; slot < span.firstSlot + span.slots; slot++) {
      if (move.path == HashPath::kCast)
        sum += mixWord(castWord(move, address, slot) + key + slot * kHashStep);
      else if (move.path == HashPath::kBytes)
        sum += sumSlot<true>(loadSlot<true>(move, address, key, slot));
      else
        sum += sumSlot<false>(loadSlot<false>(move, address, key, slot));
    }
  }
  return sum;
}

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
// Writes one tile of made-up values, or compares memory with them. The lanes of a warp share a run; on the host there is one lane.
#pragma once

#include <cstring>

#include "m2n/shared/cast.hpp"
#include "values/shared/value_box.hpp"
#include "values/shared/value_words.hpp"

namespace nccl_ext {

struct alignas(16) ValueQuad {
  std::uint32_t words[4];
};

struct Lane {
  std::uint32_t index;
  std::uint32_t count;
};

NCCL_EXT_HD inline std::uint32_t bytesOfDType(std::uint32_t dtype) {
  const auto code = static_cast<DType>(dtype);
  if (code == DType::kF64 || code == DType::kI64 || code == DType::kU64) return 8;
  if (code == DType::kF32 || code == DType::kI32 || code == DType::kU32) return 4;
  return code == DType::kF16 || code == DType::kBf16 || code == DType::kI16 || code == DType::kU16 ? 2 : 1;
}

// Bytes before the first 16-byte boundary, at most `bytes`.
NCCL_EXT_HD inline std::uint64_t headOf(const std::uint8_t* address, std::uint64_t bytes) {
  const std::uint64_t head = -reinterpret_cast<std::uintptr_t>(address) % 16;
  return head < bytes ? head : bytes;
}

// Bytes `first` to `first + bytes` of a tensor to `to`.
NCCL_EXT_HD inline void writeRun(ValueWords& words, std::uint8_t* to, std::uint64_t first, std::uint64_t bytes,
                                 Lane lane) {
  const std::uint64_t head = headOf(to, bytes), quads = (bytes - head) / 16;
  for (std::uint64_t i = lane.index; i < head; i += lane.count) to[i] = words.byteAt(first + i);
  auto* const aligned = reinterpret_cast<ValueQuad*>(to + head);
  for (std::uint64_t i = lane.index; i < quads; i += lane.count) {
    ValueQuad quad;
    words.quadAt(first + head + 16 * i, quad.words);
    aligned[i] = quad;
  }
  for (std::uint64_t i = head + 16 * quads + lane.index; i < bytes; i += lane.count) to[i] = words.byteAt(first + i);
}

NCCL_EXT_HD inline void compareByte(ValueDifference& found, std::uint8_t seen, std::uint8_t expected,
                                    std::uint64_t place) {
  if (seen == expected) return;
  found.bytes++;
  if (place < found.first) found.first = place;
}

// Memory at `seen`, which is byte `place` of the rank's, with bytes `first` on of a tensor.
NCCL_EXT_HD inline void compareRun(ValueWords& words, const std::uint8_t* seen, std::uint64_t place,
                                   std::uint64_t first, std::uint64_t bytes, Lane lane, ValueDifference& found) {
  const std::uint64_t head = headOf(seen, bytes), quads = (bytes - head) / 16;
  for (std::uint64_t i = lane.index; i < head; i += lane.count)
    compareByte(found, seen[i], words.byteAt(first + i), place + i);
  const auto* const aligned = reinterpret_cast<const ValueQuad*>(seen + head);
  for (std::uint64_t i = lane.index; i < quads; i += lane.count) {
    const ValueQuad there = aligned[i];
    ValueQuad expected;
    const std::uint64_t at = head + 16 * i;
    words.quadAt(first + at, expected.words);
    std::uint32_t different = 0;
    for (int w = 0; w < 4; w++) different |= there.words[w] ^ expected.words[w];
    if (different == 0) continue;
    for (std::uint32_t b = 0; b < 16; b++) {
      compareByte(found, static_cast<std::uint8_t>(there.words[b / 4] >> (8 * (b % 4))),
                  static_cast<std::uint8_t>(expected.words[b / 4] >> (8 * (b % 4))), place + at + b);
    }
  }
  for (std::uint64_t i = head + 16 * quads + lane.index; i < bytes; i += lane.count)
    compareByte(found, seen[i], words.byteAt(first + i), place + i);
}

// The same where the memory holds what a cast made of the values.
NCCL_EXT_HD inline void compareCast(ValueWords& words, const ValueBox& box, const std::uint8_t* seen,
                                    std::uint64_t place, std::uint64_t element, std::uint64_t elements, Lane lane,
                                    ValueDifference& found) {
  const std::uint32_t from = bytesOfDType(box.from), to = bytesOfDType(box.to);
  for (std::uint64_t i = lane.index; i < elements; i += lane.count) {
    const std::uint64_t value = words.elementAt((element + i) * from, from);
    const std::uint64_t expected = castBits(static_cast<DType>(box.from), static_cast<DType>(box.to), value);
    for (std::uint32_t b = 0; b < to; b++) {
      const std::uint64_t at = i * to + b;
      compareByte(found, seen[at], static_cast<std::uint8_t>(expected >> (8 * b)), place + at);
    }
  }
}

NCCL_EXT_HD inline void writeTile(std::uint8_t* memory, const ValueBox& box, std::uint64_t tile, Lane lane) {
  ValueWords words(box.seed, box.evenMask, box.oddMask);
  const std::uint64_t size = bytesOfDType(box.from);
  forRuns(box, tile, [&](std::uint64_t local, std::uint64_t element, std::uint64_t skipped, std::uint64_t elements) {
    writeRun(words, memory + local + skipped * size, element * size, elements * size, lane);
  });
}

NCCL_EXT_HD inline void compareTile(const std::uint8_t* memory, const ValueBox& box, std::uint64_t tile, Lane lane,
                                    ValueDifference& found) {
  ValueWords words(box.seed, box.evenMask, box.oddMask);
  const std::uint64_t size = bytesOfDType(box.to);
  forRuns(box, tile, [&](std::uint64_t local, std::uint64_t element, std::uint64_t skipped, std::uint64_t elements) {
    const std::uint64_t place = local + skipped * size;
    if (box.from == box.to)
      compareRun(words, memory + place, place, element * size, elements * size, lane, found);
    else
      compareCast(words, box, memory + place, place, element, elements, lane, found);
  });
}

}  // namespace nccl_ext

// SPDX-License-Identifier: Apache-2.0
// One float converted between dtypes, bit for bit as core/src/dtype/float-format.ts does, where the rules are: one rounding to
// nearest even straight from the source, canonical NaNs, saturating fp8.
#pragma once

#include <cstdint>
#include <cstring>

#include "generated/contract.hpp"
#include "runtime/shared/qualifiers.hpp"

namespace nccl_ext {

// A type narrower than f32; all patterns are magnitudes, without the sign bit. As NarrowFormat of float-format.ts.
struct NarrowFormat {
  int signBit;
  int mantissa;
  int rebias;
  std::uint32_t largest;
  std::uint32_t infinity;  // 0: none
  std::uint32_t overflow;
  std::uint32_t nan;
};

// Of f16, bf16, f8e4m3 and f8e5m2.
NCCL_EXT_HD inline constexpr NarrowFormat narrowFormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {15, 10, 112, 0x7bff, 0x7c00, 0x7c00, 0x7fff};
    case DType::kBf16:
      return {15, 7, 0, 0x7f7f, 0x7f80, 0x7f80, 0x7fff};
    case DType::kF8e4m3:
      return {7, 3, 120, 0x7e, 0, 0x7e, 0x7f};
    default:
      return {7, 2, 112, 0x7b, 0x7c, 0x7b, 0x7f};
  }
}

inline constexpr std::uint32_t kF32NaN = 0x7fff'ffff;
inline constexpr std::uint32_t kF32Infinity = 0x7f80'0000;
inline constexpr std::uint64_t kF64NaN = 0x7fff'ffff'ffff'ffff;

// `value` / 2^dropped, to nearest even.
NCCL_EXT_HD inline constexpr std::uint32_t roundOff(std::uint32_t value, int dropped) {
  const std::uint32_t odd = (value >> dropped) & 1;
  return (value + (1u << (dropped - 1)) - 1 + odd) >> dropped;
}

// The pattern nearest to the f32 whose bits are `bits`.
NCCL_EXT_HD inline constexpr std::uint32_t narrowBits(std::uint32_t bits, const NarrowFormat& format) {
  const std::uint32_t magnitude = bits & 0x7fff'ffff;
  if (magnitude > kF32Infinity) return format.nan;
  const std::uint32_t sign = (bits >> 31) << format.signBit;
  const int exponent = static_cast<int>(magnitude >> 23) - format.rebias;
  // bf16 has the exponents of f32 (rebias 0), so there subnormals round as normals do.
  if (exponent >= 1 || format.rebias == 0) {
    const std::uint32_t rounded =
        roundOff(magnitude - (static_cast<std::uint32_t>(format.rebias) << 23), 23 - format.mantissa);
    return sign | (rounded < format.overflow ? rounded : format.overflow);
  }
  const int lost = 24 - format.mantissa - exponent, dropped = lost < 25 ? lost : 25;
  return sign | roundOff((magnitude & 0x7f'ffff) | 0x80'0000, dropped);
}

// The f32 bits of the value that `pattern` stands for; exact.
NCCL_EXT_HD inline constexpr std::uint32_t widenBits(std::uint32_t pattern, const NarrowFormat& format) {
  const std::uint32_t magnitude = pattern & ((1u << format.signBit) - 1);
  const std::uint32_t sign = (pattern >> format.signBit) << 31;
  if (magnitude > format.largest) return magnitude == format.infinity ? sign | kF32Infinity : kF32NaN;
  if (magnitude >> format.mantissa != 0 || format.rebias == 0)
    return sign | ((magnitude << (23 - format.mantissa)) + (static_cast<std::uint32_t>(format.rebias) << 23));
  if (magnitude == 0) return sign;
  int top = 0;
  while (magnitude >> (top + 1) != 0) top++;
  return sign | (static_cast<std::uint32_t>(top + format.rebias + 1 - format.mantissa) << 23) |
         ((magnitude << (23 - top)) & 0x7f'ffff);
}

// The f32 bits of an f64 rounded to odd; only for narrowBits.
NCCL_EXT_HD inline constexpr std::uint32_t oddBits(std::uint64_t bits) {
  const auto high = static_cast<std::uint32_t>(bits >> 32), low = static_cast<std::uint32_t>(bits);
  const std::uint32_t sign = high & 0x8000'0000, magnitude = high & 0x7fff'ffff;
  const int exponent = static_cast<int>(magnitude >> 20) - 896;
  const std::uint32_t fraction = ((magnitude & 0xf'ffff) << 3) | (low >> 29);
  const std::uint32_t sticky = (low & 0x1fff'ffff) == 0 ? 0 : 1;
  if (exponent >= 1 && exponent <= 254) return sign | (static_cast<std::uint32_t>(exponent) << 23) | fraction | sticky;
  if (magnitude >= 0x7ff0'0000) return (fraction | sticky) != 0 ? kF32NaN : sign | kF32Infinity;
  if (exponent > 254) return sign | 0x7f7f'ffff;
  const int shift = 1 - exponent;
  if (shift > 24) return sign | ((magnitude | low) != 0 ? 1 : 0);
  const std::uint32_t significand = fraction | 0x80'0000;
  const std::uint32_t lost = (significand & ((1u << shift) - 1)) | sticky;
  return sign | (significand >> shift) | (lost == 0 ? 0 : 1);
}

template <class To, class From>
NCCL_EXT_HD inline To sameBits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

// An element of `from` as f32 bits; f64 rounded to nearest when the target is f32, to odd when it is narrower.
NCCL_EXT_HD inline std::uint32_t toF32Bits(DType from, DType to, std::uint64_t bits) {
  if (from == DType::kF32) return static_cast<std::uint32_t>(bits);
  if (from != DType::kF64) return widenBits(static_cast<std::uint32_t>(bits), narrowFormatOf(from));
  if (to != DType::kF32) return oddBits(bits);
  if ((bits & kF64NaN) > 0x7ff0'0000'0000'0000) return kF32NaN;
  return sameBits<std::uint32_t>(static_cast<float>(sameBits<double>(bits)));
}

// The bits of an element of `from`, another dtype than `to`, as an element of `to`. Both convert (isCastable of core/src/dtype).
NCCL_EXT_HD inline std::uint64_t castBits(DType from, DType to, std::uint64_t bits) {
  const std::uint32_t single = toF32Bits(from, to, bits);
  const bool isNaN = (single & 0x7fff'ffff) > kF32Infinity;
  if (to == DType::kF32) return isNaN ? kF32NaN : single;
  if (to != DType::kF64) return narrowBits(single, narrowFormatOf(to));
  return isNaN ? kF64NaN : sameBits<std::uint64_t>(static_cast<double>(sameBits<float>(single)));
}

}  // namespace nccl_ext

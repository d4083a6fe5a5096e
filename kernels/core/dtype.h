// Element types, and the two 16-bit floats as storage with conversions on the host (round to nearest even).
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace tilewave {

enum class DType : std::uint8_t { f64, f32, bf16, f16, i32 };

constexpr std::int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 8;
    case DType::f32:
      return 4;
    case DType::bf16:
      return 2;
    case DType::f16:
      return 2;
    case DType::i32:
      return 4;
  }
  return 0;
}

constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "f64";
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::i32:
      return "i32";
  }
  return "unknown";
}

// The upper 16 bits of an IEEE float: 8 bits of exponent, 7 of fraction.
struct bf16 {
  std::uint16_t bits = 0;

  bf16() = default;
  explicit constexpr bf16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const bool nan = (word & 0x7fffffffu) > 0x7f800000u;
    bits =
        nan ? static_cast<std::uint16_t>((word >> 16) | 0x40u) : static_cast<std::uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
  explicit constexpr operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

// IEEE binary16: 5 bits of exponent, 10 of fraction; subnormals kept, overflow to infinity.
struct f16 {
  std::uint16_t bits = 0;

  f16() = default;
  explicit constexpr f16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (word >> 16) & 0x8000u;
    const std::uint32_t magnitude = word & 0x7fffffffu;
    std::uint32_t half = 0;
    if (magnitude > 0x7f800000u) {
      half = 0x7e00u;
    } else if (magnitude >= 0x477ff000u) {  // 65520 and beyond round to infinity
      half = 0x7c00u;
    } else if (magnitude >= 0x38800000u) {  // normal
      half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    } else if (magnitude >= 0x33000000u) {  // subnormal
      const std::uint32_t shift = 126u - (magnitude >> 23);
      const std::uint32_t fraction = (magnitude & 0x7fffffu) | 0x800000u;
      const std::uint32_t kept = fraction >> shift;
      const std::uint32_t rest = fraction & ((1u << shift) - 1u);
      const std::uint32_t tie = 1u << (shift - 1u);
      half = kept + ((rest > tie || (rest == tie && (kept & 1u) != 0u)) ? 1u : 0u);
    }
    bits = static_cast<std::uint16_t>(sign | half);
  }
  explicit constexpr operator float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1fu;
    const std::uint32_t fraction = bits & 0x3ffu;
    if (exponent == 0) {
      const float value = static_cast<float>(fraction) * 0x1p-24f;
      return sign != 0 ? -value : value;
    }
    const std::uint32_t word = exponent == 31 ? 0x7f800000u | (fraction << 13) : ((exponent + 112u) << 23) | (fraction << 13);
    return std::bit_cast<float>(sign | word);
  }
};

static_assert(sizeof(bf16) == 2 && sizeof(f16) == 2, "16-bit floats are stored as 16 bits");

// The DType of a C++ element type.
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<bf16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<f16> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <class T>
inline constexpr DType kDTypeOf = DTypeOf<T>::value;

}  // namespace tilewave

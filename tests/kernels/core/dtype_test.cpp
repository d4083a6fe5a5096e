// The 16-bit floats against their definition: every pattern decodes to its formula, and a float rounds to the nearest pattern,
// at a tie to the even one, beyond the largest to infinity.
#include "kernels/core/dtype.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace tilewave {
namespace {

struct Format {
  int exponent_bits, fraction_bits;
};

template <class Half>
constexpr Format kFormat{};
template <>
constexpr Format kFormat<bf16>{8, 7};
template <>
constexpr Format kFormat<f16>{5, 10};

// (-1)^s 2^(e - bias) (1 + f / 2^n); e = 0: (-1)^s 2^(1 - bias) f / 2^n; e all ones: infinity or NaN.
template <class Half>
double decode(std::uint16_t bits) {
  constexpr Format kBits = kFormat<Half>;
  const int bias = (1 << (kBits.exponent_bits - 1)) - 1;
  const int exponent = (bits >> kBits.fraction_bits) & ((1 << kBits.exponent_bits) - 1);
  const int fraction = bits & ((1 << kBits.fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << kBits.exponent_bits) - 1) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  const double significand = (exponent == 0 ? 0.0 : 1.0) + std::ldexp(fraction, -kBits.fraction_bits);
  return sign * std::ldexp(significand, std::max(exponent, 1) - bias);
}

template <class Half>
std::uint16_t infinity() {
  return static_cast<std::uint16_t>(((1 << kFormat<Half>.exponent_bits) - 1) << kFormat<Half>.fraction_bits);
}

template <class Half>
class HalfFloat : public ::testing::Test {};
using HalfFloats = ::testing::Types<bf16, f16>;
TYPED_TEST_SUITE(HalfFloat, HalfFloats);

TYPED_TEST(HalfFloat, EveryPatternDecodesToItsFormulaAndBack) {
  for (int pattern = 0; pattern <= 0xffff; ++pattern) {
    TypeParam half;
    half.bits = static_cast<std::uint16_t>(pattern);
    const auto value = static_cast<float>(half);
    const double expected = decode<TypeParam>(half.bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << pattern;
      EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(value)))) << pattern;
    } else {
      EXPECT_EQ(static_cast<double>(value), expected) << pattern;
      EXPECT_EQ(TypeParam(value).bits, half.bits) << pattern;
    }
  }
}

// Between two neighbours: the midpoint, and the floats beside it. The neighbour of the largest is infinity, at the place where
// the next value would be.
TYPED_TEST(HalfFloat, RoundsToTheNearestAndAtATieToTheEven) {
  for (int pattern = 0; pattern < infinity<TypeParam>(); ++pattern) {
    const auto below = static_cast<std::uint16_t>(pattern), above = static_cast<std::uint16_t>(pattern + 1);
    const double low = decode<TypeParam>(below);
    const double spacing = pattern == 0 ? decode<TypeParam>(1) : low - decode<TypeParam>(static_cast<std::uint16_t>(pattern - 1));
    const double high = above == infinity<TypeParam>() ? low + spacing : decode<TypeParam>(above);
    const auto middle = static_cast<float>(0.5 * (low + high));
    ASSERT_EQ(static_cast<double>(middle), 0.5 * (low + high));
    for (const std::uint16_t sign : {0x0000, 0x8000}) {
      const float direction = sign == 0 ? 1.0f : -1.0f;
      const auto rounded = [&](float value) { return TypeParam(direction * value).bits; };
      ASSERT_EQ(rounded(middle), sign | (pattern % 2 == 0 ? below : above)) << pattern;
      ASSERT_EQ(rounded(std::nextafter(middle, 0.0f)), sign | below) << pattern;
      ASSERT_EQ(rounded(std::nextafter(middle, std::numeric_limits<float>::infinity())), sign | above) << pattern;
    }
  }
}

TYPED_TEST(HalfFloat, OverflowsToInfinity) {
  EXPECT_EQ(TypeParam(std::numeric_limits<float>::max()).bits, infinity<TypeParam>());
  EXPECT_EQ(TypeParam(-std::numeric_limits<float>::infinity()).bits, infinity<TypeParam>() | 0x8000);
}

TEST(DType, SizesAndNamesBelongToTheirTypes) {
  EXPECT_EQ(size_of(kDTypeOf<double>), 8);
  EXPECT_EQ(size_of(kDTypeOf<float>), 4);
  EXPECT_EQ(size_of(kDTypeOf<bf16>), 2);
  EXPECT_EQ(size_of(kDTypeOf<f16>), 2);
  EXPECT_EQ(size_of(kDTypeOf<std::int32_t>), 4);
  EXPECT_EQ(name_of(DType::bf16), "bf16");
}

}  // namespace
}  // namespace tilewave

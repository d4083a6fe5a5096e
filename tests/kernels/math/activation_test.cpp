// The activations' formulas: fp64 against the definitions, derivatives against central differences, fp32 against fp64.
#include "kernels/math/activation.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <numbers>

namespace tilewave {
namespace {

constexpr double kStep = 1.0 / 128.0, kEnd = 14.0;

TEST(ActivationMath, Fp64IsTheDefinition) {
  for (double x = -kEnd; x <= kEnd; x += kStep) {
    const double argument = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
    EXPECT_NEAR(gelu_tanh(x), 0.5 * x * (1.0 + std::tanh(argument)), 1e-14 * kEnd) << x;
    EXPECT_NEAR(gelu_erf(x), 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2)), 1e-14 * kEnd) << x;
    EXPECT_EQ(relu(x), std::max(x, 0.0));
  }
}

TEST(ActivationMath, DerivativesAreTheSlopes) {
  constexpr double kH = 1e-5;
  for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu_tanh, Activation::gelu_erf}) {
    for (double x = -kEnd + 0.001; x <= kEnd; x += kStep) {  // off ReLU's kink
      const double slope = (activate(activation, x + kH) - activate(activation, x - kH)) / (2.0 * kH);
      EXPECT_NEAR(activation_derivative(activation, x), slope, 1e-9) << name_of(activation) << " at " << x;
    }
  }
  EXPECT_EQ(relu_derivative(0.0), 0.0);
}

TEST(ActivationMath, Fp32IsCloseToFp64) {
  for (double x = -kEnd; x <= kEnd; x += kStep) {
    const float single = static_cast<float>(x);
    const double scale = std::max(std::abs(x), 1.0);
    for (const Activation activation : {Activation::relu, Activation::gelu_tanh, Activation::gelu_erf}) {
      EXPECT_NEAR(activate(activation, single), activate(activation, x), 2e-7 * scale) << name_of(activation) << " at " << x;
      EXPECT_NEAR(activation_derivative(activation, single), activation_derivative(activation, x), 4e-7)
          << name_of(activation) << " at " << x;
    }
    EXPECT_NEAR(exponential(single) / std::exp(x), 1.0, 2e-7) << x;
  }
}

TEST(ActivationMath, FarAwayAndNotANumber) {
  constexpr float kHuge = 1e20f, kNan = std::numeric_limits<float>::quiet_NaN();
  for (const Activation activation : {Activation::relu, Activation::gelu_tanh, Activation::gelu_erf}) {
    EXPECT_EQ(activate(activation, kHuge), kHuge) << name_of(activation);
    EXPECT_NEAR(activate(activation, -1e4f), 0.0f, 1e-30f) << name_of(activation);
    EXPECT_EQ(activation_derivative(activation, 100.0f), 1.0f) << name_of(activation);
    EXPECT_NEAR(activation_derivative(activation, -100.0f), 0.0f, 1e-30f) << name_of(activation);
    EXPECT_TRUE(std::isnan(activate(activation, kNan))) << name_of(activation);
  }
}

}  // namespace
}  // namespace tilewave

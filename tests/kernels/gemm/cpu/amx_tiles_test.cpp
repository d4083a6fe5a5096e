// The numbers of the row `amx_tiles` where an f32 operand is the sum of two bf16: how near they are, and what becomes of the ends of fp32's
// range.
#include "kernels/gemm/cpu/amx_tiles.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/core/queue.h"
#include "kernels/gemm/gemm.h"

namespace tilewave {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// a [m, k] times b [n, k], both along K, into [n, m].
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  std::vector<float> a, b;

  std::vector<float> by(const std::string& row) const {
    std::vector<float> d(static_cast<std::size_t>(m * n), NAN);
    GemmArgs args{.a = ConstMatrixView(a.data(), m, k, k, DType::f32),
                  .b = ConstMatrixView(b.data(), n, k, k, DType::f32),
                  .d = {.data = d.data(), .rows = n, .cols = m, .ld = m, .dtype = DType::f32},
                  .math = MathMode::tf32};
    const GemmPlan plan = choose(problem_of(args), probe_cpu(1), {.forced = row});
    std::vector<std::byte> workspace(static_cast<std::size_t>(plan.workspace_bytes));
    args.plan = &plan;
    args.workspace = workspace.data();
    CpuQueue queue = make_cpu_queue(1);
    run(queue, args);
    return d;
  }

  double exactly(std::int64_t row_of_b, std::int64_t row_of_a) const {
    double sum = 0.0;
    for (std::int64_t step = 0; step < k; ++step) sum += double{b[row_of_b * k + step]} * double{a[row_of_a * k + step]};
    return sum;
  }
};

class AmxTiles : public testing::Test {
 protected:
  void SetUp() override {
    if (!cpu_has_amx()) GTEST_SKIP() << "this CPU has no AMX, or the system does not let it be used.";
  }

  template <class Draw>
  static Product product(std::int64_t m, std::int64_t n, std::int64_t k, const Draw& draw) {
    Product p{.m = m,
              .n = n,
              .k = k,
              .a = std::vector<float>(static_cast<std::size_t>(m * k)),
              .b = std::vector<float>(static_cast<std::size_t>(n * k))};
    for (float& x : p.a) x = draw();
    for (float& x : p.b) x = draw();
    return p;
  }
};

TEST_F(AmxTiles, ProductsAreNearByFourteenBits) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> digits(1.0F, 2.0F);
  std::uniform_int_distribution<int> exponent(-40, 40), sign(0, 1);
  const Product p = product(64, 64, 1, [&] { return std::ldexp(sign(random) == 0 ? digits(random) : -digits(random), exponent(random)); });
  const std::vector<float> d = p.by("amx_tiles");
  double worst = 0.0, sum = 0.0;
  for (std::int64_t n = 0; n < p.n; ++n) {
    for (std::int64_t m = 0; m < p.m; ++m) {
      const double exact = p.exactly(n, m), error = (d[n * p.m + m] - exact) / exact;
      worst = std::max(worst, std::abs(error));
      sum += error;
    }
  }
  EXPECT_LT(worst, std::ldexp(1.0, -14)) << "the high parts alone would leave 2^-7, tf32 2^-10";
  EXPECT_GT(worst, std::ldexp(1.0, -20));
  EXPECT_LT(std::abs(sum) / static_cast<double>(p.m * p.n), std::ldexp(1.0, -18)) << "errors are to either side";
}

TEST_F(AmxTiles, SumsOfManyAreAsNear) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  const Product p = product(64, 96, 1000, [&] { return normal(random); });
  const std::vector<float> d = p.by("amx_tiles");
  double squares = 0.0;
  for (std::int64_t n = 0; n < p.n; ++n) {
    for (std::int64_t m = 0; m < p.m; ++m) squares += std::pow(d[n * p.m + m] - p.exactly(n, m), 2.0);
  }
  const double error = std::sqrt(squares / static_cast<double>(p.m * p.n * p.k));  // of sums whose deviation is the root of K
  EXPECT_LT(error, std::ldexp(1.0, -16));
  EXPECT_GT(error, 0.0);
}

// One element of A in a matrix of ones.
TEST_F(AmxTiles, WhatIsNoNumberStaysNone) {
  const auto of = [&](float element) {
    Product p = product(16, 16, 32, [] { return 1.0F; });
    p.a[0] = element;
    const std::vector<float> d = p.by("amx_tiles");
    for (std::int64_t n = 0; n < p.n; ++n) {
      for (std::int64_t m = 1; m < p.m; ++m) EXPECT_EQ(d[n * p.m + m], 32.0F) << "a row that the element is not in";
    }
    return d[0];
  };
  EXPECT_FALSE(std::isfinite(of(kInfinity)));
  EXPECT_FALSE(std::isfinite(of(-kInfinity)));
  EXPECT_TRUE(std::isnan(of(std::numeric_limits<float>::quiet_NaN())));
  for (const std::uint32_t bits : {0xffffffffU, 0x7fffffffU, 0x7f800001U})
    EXPECT_TRUE(std::isnan(of(std::bit_cast<float>(bits)))) << std::hex << bits;  // adding half a bf16 would make zero of the first
  EXPECT_NEAR(of(3.3e38F), 3.3e38F, 1e34F);
  EXPECT_EQ(of(1e-40F), 31.0F);
}

TEST_F(AmxTiles, RefusesWhatItDoesNotMultiply) {
  GemmProblem problem = {.m = 64, .n = 64, .k = 64, .math = MathMode::tf32, .a_pitch = 64, .b_pitch = 64, .d_pitch = 64};
  EXPECT_EQ(kAmxTilesKernel.refuse(problem, probe_cpu(1)), "");
  problem.math = MathMode::ieee;
  EXPECT_EQ(kAmxTilesKernel.refuse(problem, probe_cpu(1)), "it multiplies bf16 and, where math is tf32, f32; not f32 with ieee math.");
  EXPECT_EQ(name_of(choose(problem, probe_cpu(1)).composition), "packed_tiles");
  problem.math = MathMode::tf32, problem.output_dtype = DType::bf16;
  EXPECT_EQ(kAmxTilesKernel.refuse(problem, probe_cpu(1)), "it stores f32 or the operands' type, f32, not bf16.");
}

}  // namespace
}  // namespace tilewave

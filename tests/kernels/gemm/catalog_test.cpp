// Every CPU kernel of the catalog over all pairs of {majors, types, tile, M, N, K, pitches, epilogue, values}: against naive,
// bit for bit where sums of small integers are exact, else by relative error; on 1, 2, 3 and 5 threads with equal bits.
// Whatever must not be touched (pitch gaps, guards, the memory behind the workspace) holds NaN before and after.
// naive itself is compared with a literal triple loop.
#include "kernels/gemm/catalog.h"

#include <cmath>
#include <gtest/gtest.h>
#include <iostream>
#include <numbers>
#include <string>

#include "kernels/core/queue.h"
#include "kernels/gemm/cpu/amx_tiles.h"
#include "kernels/gemm/cpu/packed_pairs.h"
#include "kernels/gemm/cpu/packed_tiles.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/reference/naive.h"
#include "tests/kernels/gemm/cases.h"
#include "tests/kernels/gemm/gpus.h"

namespace tilewave {
namespace {

using namespace gemm_sweep;

constexpr std::int64_t kKcBlock = PackedLayout::kKcBlock;
const Lengths kCpuLengths = {.ks = {1, 2, 7, 64, kKcBlock, kKcBlock + 1, 2 * kKcBlock + 1}};

// Runs the case on one row and tile, with a workspace of exactly the planned size before a guard.
void run_on(const std::string& row, int threads, const Case& c, Operands& operands) {
  GemmArgs args = operands.args(c);
  const GemmPlan plan = choose(problem_of(args), probe_cpu(threads), {.forced = concat(row, "/", c.tile.m, "x", c.tile.n)});
  std::vector<std::byte> workspace(static_cast<std::size_t>(plan.workspace_bytes) + 256, kPoison);
  args.plan = &plan;
  args.workspace = workspace.data();
  static std::vector<CpuQueue> queues(8);
  CpuQueue& queue = queues[static_cast<std::size_t>(threads)];
  if (queue.threads == nullptr) queue = make_cpu_queue(threads);
  run(queue, args);
  EXPECT_TRUE(std::all_of(workspace.end() - 256, workspace.end(), [](std::byte byte) { return byte == kPoison; }))
      << "the workspace is too small";
}

double literal_activation(Activation activation, double x) {
  switch (activation) {
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::gelu_tanh:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * std::pow(x, 3.0))));
    case Activation::gelu_erf:
      return x * 0.5 * std::erfc(-x / std::numbers::sqrt2);
    default:
      return x;
  }
}

// By central differences, off ReLU's kink.
double literal_derivative(Activation activation, double x) {
  if (activation == Activation::relu && x == 0.0) return 0.0;
  const double h = 1e-5;
  return (literal_activation(activation, x + h) - literal_activation(activation, x - h)) / (2.0 * h);
}

void literal(const Case& c, Operands& o) {
  for (std::int64_t n = 0; n < c.n; ++n) {
    double column_sum = 0.0;
    for (std::int64_t k = 0; k < c.k; ++k) column_sum += c.b_major == Major::k ? o.b.get(n, k) : o.b.get(k, n);
    if (c.bias_gradient == BiasGradient::accumulated) column_sum += o.bias_gradient.get(0, n);
    if (c.bias_gradient != BiasGradient::none) o.bias_gradient.set(0, n, column_sum);
    for (std::int64_t m = 0; m < c.m; ++m) {
      const std::int64_t row = c.d_major == Major::m ? n : m, col = c.d_major == Major::m ? m : n;
      double z = 0.0;
      for (std::int64_t k = 0; k < c.k; ++k) {
        z += (c.a_major == Major::k ? o.a.get(m, k) : o.a.get(k, m)) * (c.b_major == Major::k ? o.b.get(n, k) : o.b.get(k, n));
      }
      if (c.alpha != Scale::none) z *= kScale;
      if (c.bias) z += o.bias.get(0, m);
      if (c.saved_input) o.saved_input.set(row, col, z);
      z = literal_activation(c.activation, z);
      if (c.derivative != Activation::none) z *= std::round(literal_derivative(c.derivative, o.derivative_of.get(row, col)) * 1e9) * 1e-9;
      const double beta = c.beta == Scale::none ? 1.0 : kScale;
      if (c.residual == Residual::beside) z += beta * o.residual.get(row, col);
      if (c.residual == Residual::in_place) z += beta * o.d.get(row, col);
      if (c.accumulate) z += o.d.get(row, col);
      o.d.set(row, col, z);
    }
  }
  for (std::int64_t m = 0; c.output_sums && m < c.m; ++m) {
    double sum = 0.0;
    for (std::int64_t n = 0; n < c.n; ++n) sum += c.d_major == Major::m ? o.d.get(n, m) : o.d.get(m, n);
    o.output_sums.set(0, m, sum);
  }
}

TEST(GemmCatalog, NaiveAgreesWithALiteralTripleLoop) {
  std::mt19937 random(7);
  const std::vector<Case> cases = cases_of(kNaiveKernel, probe_cpu(1), kNaiveKernel.tiles, kCpuLengths);
  EXPECT_GE(cases.size(), 16u * 7u);  // types x K alone
  for (const Case& c : cases) {
    SCOPED_TRACE(text(c));
    Operands naive(c, random), expected = naive;
    run_on("naive", 2, c, naive);
    literal(c, expected);
    compare(naive, expected, c, DType::f32);  // the central differences are good to 1e-9
  }
}

// Each case on the row against naive, and on more threads against one.
void sweep(const GemmKernel& row, const std::vector<Case>& cases) {
  std::mt19937 random(11);
  for (const Case& c : cases) {
    SCOPED_TRACE(concat(name_of(row), "/", text(c)));
    Operands ours(c, random), expected = ours;
    const Operands fresh = ours;
    run_on(name_of(row), 1, c, ours);
    Case by_naive = c;
    by_naive.tile = {.m = 1, .n = 1};
    run_on("naive", 2, by_naive, expected);
    compare(ours, expected, c, sums_of(c));
    for (const int threads : {2, 3, 5}) {
      Operands again = fresh;
      run_on(name_of(row), threads, c, again);
      EXPECT_TRUE(again.d == ours.d && again.saved_input == ours.saved_input && again.bias_gradient == ours.bias_gradient)
          << "other bits with " << threads << " threads";
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(GemmCatalog, EveryRowAgreesWithNaiveOnAnyNumberOfThreads) {
  int rows = 0;
  for (const GemmKernel* row : gemm_catalog()) {
    if (row->launch_cpu == nullptr || name_of(*row) == "naive") continue;
    if (row == &kPackedPairsKernel && !cpu_multiplies_bf16_pairs()) {
      std::cerr << "packed_pairs is not swept: this CPU has no AVX512-BF16.\n";
      continue;
    }
    if (row == &kAmxTilesKernel && !cpu_has_amx()) {
      std::cerr << "amx_tiles is not swept: this CPU has no AMX, or the system does not let it be used.\n";
      continue;
    }
    ++rows;
    const std::vector<Case> cases = cases_of(*row, probe_cpu(1), row->tiles, kCpuLengths);
    EXPECT_GE(cases.size(), row->tiles.size() * 7u) << name_of(*row);
    sweep(*row, cases);
  }
  EXPECT_GE(rows, 1);
}

// Lengths of K that packed_tiles cuts into parts, where both operands lie step by step of K.
TEST(GemmCatalog, PartsOfKAddUp) {
  constexpr std::int64_t part = kPackedPartK;
  const Lengths lengths = {.ks = {2 * part, 2 * part + 1, 2 * part + 7, 3 * part - 1, 3 * part, 4 * part, 4 * part + 1, 5 * part + 7}};
  const std::vector<Case> cases = cases_of(kPackedTilesKernel, probe_cpu(1), kPackedTiles, lengths);
  const auto parts = [](const Case& c) { return packed_parts({.m = c.m, .n = c.n, .k = c.k, .a_major = c.a_major, .b_major = c.b_major}); };
  for (const std::int64_t some : {1, 2, 4}) {
    EXPECT_GE(std::count_if(cases.begin(), cases.end(), [&](const Case& c) { return parts(c) == some; }), 4) << some << " parts";
  }
  sweep(kPackedTilesKernel, cases);
}

TEST(GemmCatalog, RowsHaveNamesTilesAndSentences) {
  for (const GemmKernel* row : gemm_catalog()) {
    EXPECT_EQ(find_gemm_kernel(row->backend, name_of(*row)), row);
    EXPECT_FALSE(row->tiles.empty()) << name_of(*row);
    const std::string refusal =
        row->refuse({.m = 8, .n = 8, .k = 8, .operand_dtype = DType::bf16, .output_dtype = DType::bf16}, probe_cpu(1));
    EXPECT_TRUE(refusal.empty() || refusal.back() == '.') << refusal;
  }
  EXPECT_EQ(find_gemm_kernel("fast"), nullptr);
}

TEST(GemmCatalog, SumsOfDAreForTheOraclesAndCublasLt) {
  const GemmProblem through_gelu = {.role = GemmRole::dgrad,
                                    .m = 4096,
                                    .n = 5120,
                                    .k = 1024,
                                    .a_major = Major::m,
                                    .operand_dtype = DType::bf16,
                                    .output_dtype = DType::bf16,
                                    .epilogue = {.derivative = Activation::gelu_tanh, .output_sums = true},
                                    .a_pitch = 4096,
                                    .b_pitch = 1024,
                                    .d_pitch = 4096,
                                    .a_alignment = 128,
                                    .b_alignment = 128,
                                    .d_alignment = 128};
  int rows = 0;
  for (const GemmKernel* row : gemm_catalog()) {
    const std::string refusal = row->refuse(through_gelu, row->backend == Backend::cpu ? probe_cpu(1) : h200());
    if (name_of(*row) == "naive" || name_of(*row) == "cublaslt") {
      EXPECT_EQ(refusal, "") << name_of(*row);
      ++rows;
    } else {
      EXPECT_NE(refusal.find("no sums of D over N"), std::string::npos) << name_of(*row) << ": " << refusal;
    }
  }
  EXPECT_EQ(rows, 3);
  EXPECT_EQ(name_of(choose(through_gelu, h200()).composition), "naive");

  std::vector<GemmProblem> others(5, through_gelu);
  others[0].epilogue.derivative = Activation::gelu_erf;
  others[1].epilogue.bias = true;
  others[2].epilogue.accumulate = true;
  others[3].d_major = Major::n;
  others[4].output_dtype = DType::f32;
  for (const GemmProblem& other : others) {
    EXPECT_NE(find_gemm_kernel("cublaslt")->refuse(other, h200()).find("beside a GELU's derivative by tanh"), std::string::npos);
    EXPECT_EQ(find_gemm_kernel(Backend::cuda, "naive")->refuse(other, h200()), "");
  }
}

}  // namespace
}  // namespace tilewave

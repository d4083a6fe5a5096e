// A thousand random problems: shapes, pitches, majors, types and epilogues drawn together, on the plan that choose() takes and on one
// of the kernel that has run least; against the GPU's naive, bit for bit where sums of small integers are exact, and twice with equal bits.
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>

#include "kernels/gemm/catalog.h"
#include "kernels/gemm/reference/naive.h"
#include "tests/kernels/gemm/gpu_gemm.h"

namespace tilewave {
namespace {

using namespace gemm_sweep;

class GpuGemmRandom : public GpuGemmTest {};

Case random_case(std::mt19937& random) {
  const auto coin = [&](unsigned one_in) { return random() % one_in == 0; };
  const auto size = [&](double most) {  // as often small as large, and on a multiple of 8 half the time
    const auto drawn = static_cast<std::int64_t>(std::exp(std::uniform_real_distribution<double>(0.0, std::log(most))(random)));
    return coin(2) ? round_up(drawn, 8) : drawn;
  };
  constexpr Major kMajors[][3] = {{Major::k, Major::k, Major::m}, {Major::m, Major::k, Major::m}, {Major::m, Major::n, Major::m},
                                  {Major::k, Major::n, Major::m}, {Major::k, Major::k, Major::n}, {Major::m, Major::n, Major::n}};
  const auto& majors = kMajors[random() % (coin(4) ? 6 : 3)];
  const DType types[] = {DType::bf16, DType::bf16, DType::f16, DType::f32, DType::f64};
  Case c = {.a_major = majors[0], .b_major = majors[1], .d_major = majors[2]};
  c.operand_dtype = types[random() % std::size(types)];
  c.output_dtype = size_of(c.operand_dtype) == 2 && coin(3) ? DType::f32 : c.operand_dtype;
  c.side_dtype = coin(2) ? c.output_dtype : c.operand_dtype;
  c.math = c.operand_dtype == DType::f32 && coin(2) ? MathMode::tf32 : MathMode::ieee;
  c.m = size(700.0);
  c.n = size(700.0);
  c.k = std::min(size(4000.0), (std::int64_t{24} << 20) / (c.m * c.n) + 1);
  const auto gap = [&](std::int64_t cols, DType dtype) {
    return gap_of(coin(3) ? static_cast<Pitch>(random() % 6) : Pitch::to_128_bytes, cols, dtype);
  };
  c.a_gap = gap(c.a_major == Major::k ? c.k : c.m, c.operand_dtype);
  c.b_gap = gap(c.b_major == Major::k ? c.k : c.n, c.operand_dtype);
  c.d_gap = gap(c.d_major == Major::m ? c.m : c.n, c.output_dtype);
  c.saved_gap = gap(c.d_major == Major::m ? c.m : c.n, c.side_dtype);
  c.bias = coin(3);
  c.activation = coin(2) ? Activation::none : static_cast<Activation>(random() % 4);
  c.saved_input = coin(4);
  c.derivative = coin(3) ? static_cast<Activation>(random() % 4) : Activation::none;
  c.residual = coin(3) ? static_cast<Residual>(random() % 3) : Residual::none;
  c.alpha = coin(3) ? static_cast<Scale>(random() % 3) : Scale::none;
  c.beta = c.residual != Residual::none && coin(2) ? static_cast<Scale>(random() % 3) : Scale::none;
  c.accumulate = coin(3);
  c.bias_gradient = coin(3) ? static_cast<BiasGradient>(random() % 3) : BiasGradient::none;
  c.values = coin(2) ? Values::small_integers : Values::random;
  return c;
}

// A plan of the kernel that has run least.
GemmPlan least_tried(const std::vector<GemmPlan>& candidates, const std::map<std::string, int>& runs, std::mt19937& random) {
  std::map<int, std::vector<const GemmPlan*>> by_runs;
  for (const GemmPlan& plan : candidates) {
    const auto found = runs.find(name_of(plan.composition));
    by_runs[found == runs.end() ? 0 : found->second].push_back(&plan);
  }
  const std::vector<const GemmPlan*>& least = by_runs.begin()->second;
  return *least[random() % least.size()];
}

TEST_F(GpuGemmRandom, AThousandProblemsAgreeWithNaive) {
  std::mt19937 random(20261121);
  std::map<std::string, int> rows;
  for (int i = 0; i < 1000; ++i) {
    Case c = random_case(random);
    Operands expected(c, random);
    const Operands fresh = expected;
    const GemmProblem problem = problem_of(expected.args(c));
    std::vector<GemmPlan> candidates = gemm_candidates(problem, device_);
    std::erase_if(candidates, [](const GemmPlan& plan) { return name_of(plan.composition) == name_of(kCudaNaiveKernel); });
    std::vector<GemmPlan> plans = {choose(problem, device_), least_tried(candidates, rows, random)};
    c.tile = kCudaNaiveKernel.tiles.front();
    run_on(kCudaNaiveKernel, c, expected);
    for (const GemmPlan& plan : plans) {
      if (name_of(plan.composition) == name_of(kCudaNaiveKernel)) continue;
      const GemmKernel& row = kernel_of(Backend::cuda, plan);
      ++rows[name_of(row)];
      c.tile = plan.tile;
      SCOPED_TRACE(concat("problem ", i, ", ", name_of(row), "/", text(c), " in ", plan.split, " parts"));
      Operands ours = fresh, again = fresh;
      run_on(row, c, ours, plan.split);
      compare(ours, expected, c, sums_of(c));
      run_on(row, c, again, plan.split);
      EXPECT_TRUE(again.d == ours.d && again.saved_input == ours.saved_input && again.bias_gradient == ours.bias_gradient)
          << "other bits in a second run";
    }
    if (HasFailure()) return;
  }
  for (const auto& [row, count] : rows) std::printf("[          ] %s: %d\n", std::string(row).c_str(), count);
  if (device_.capability == 90) {
    EXPECT_GE(rows.size(), 14u) << "six of them run on any GPU";
    EXPECT_TRUE(rows.contains("repacked") && rows.contains("unaligned/deferred")) << "no problem has rows that start anywhere";
  } else {
    EXPECT_GE(rows.size(), 4u);
  }
}

}  // namespace
}  // namespace tilewave

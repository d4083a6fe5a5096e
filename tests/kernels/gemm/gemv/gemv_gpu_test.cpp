// A matrix times 1 to 16 vectors on a GPU: shapes, majors, types, pitches, first elements, epilogues and parts of K drawn together, on
// every kernel that takes them; against the GPU's naive, bit for bit where sums of small integers are exact, and twice with equal bits.
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>

#include "kernels/gemm/catalog.h"
#include "kernels/gemm/gemv/gemv.h"
#include "kernels/gemm/reference/naive.h"
#include "tests/kernels/gemm/gpu_gemm.h"

namespace tilewave {
namespace {

using namespace gemm_sweep;

class GpuGemv : public GpuGemmTest {
 protected:
  // On every kernel of the room that takes the case, or of a ladder's rung; counts them by name.
  void expect_as_naive(Case c, std::mt19937& random, std::map<std::string, int>& counts) {
    Operands expected(c, random);
    const Operands fresh = expected;
    const GemmProblem problem = problem_of(expected.args(c));
    c.tile = kCudaNaiveKernel.tiles.front();
    run_on(kCudaNaiveKernel, c, expected);
    for (const GemmKernel* row : gemm_catalog()) {
      if (!name_of(*row).starts_with("gemv_") || row->launch_cuda == nullptr) continue;
      for (const Tile tile : row->tiles) {
        if (!row->refuse(problem, device_, {&tile, 1}).empty() || random() % 3 == 0) continue;
        const int split = static_cast<int>(random() % (random() % 3 == 0 ? 30 : 6));
        c.tile = tile;
        ++counts[name_of(*row)];
        SCOPED_TRACE(concat(name_of(*row), "/", text(c), " in ", split, " parts"));
        Operands ours = fresh, again = fresh;
        run_on(*row, c, ours, split);
        compare(ours, expected, c, sums_of(c));
        run_on(*row, c, again, split);
        EXPECT_TRUE(again.d == ours.d && again.saved_input == ours.saved_input && again.bias_gradient == ours.bias_gradient)
            << "other bits in a second run";
      }
    }
  }
};

Case random_gemv(std::mt19937& random) {
  const auto coin = [&](unsigned one_in) { return random() % one_in == 0; };
  const auto size = [&](double most) {  // as often small as large, and on a multiple of 8 half the time
    const auto drawn = static_cast<std::int64_t>(std::exp(std::uniform_real_distribution<double>(0.0, std::log(most))(random)));
    return coin(2) ? round_up(drawn, 8) : drawn;
  };
  constexpr DType kTypes[] = {DType::bf16, DType::bf16, DType::f16, DType::f32, DType::f32, DType::f64};
  Case c = {.a_major = coin(2) ? Major::k : Major::m, .b_major = coin(2) ? Major::k : Major::n, .d_major = coin(4) ? Major::n : Major::m};
  c.operand_dtype = kTypes[random() % std::size(kTypes)];
  c.output_dtype = size_of(c.operand_dtype) == 2 && coin(3) ? DType::f32 : c.operand_dtype;
  c.side_dtype = coin(2) ? c.output_dtype : c.operand_dtype;
  c.math = c.operand_dtype == DType::f32 && coin(4) ? MathMode::tf32 : MathMode::ieee;
  c.m = size(1500.0), c.n = size(1500.0);
  (coin(2) ? c.m : c.n) = 1 + static_cast<std::int64_t>(random() % kMaxVectors);
  c.k = size(9000.0);
  const auto gap = [&](std::int64_t cols, DType dtype) {
    return coin(2) ? gap_of(Pitch::to_16_bytes, cols, dtype) : static_cast<std::int64_t>(random() % 9);
  };
  const auto skip = [&] { return coin(2) ? std::int64_t{0} : static_cast<std::int64_t>(random() % 9); };
  c.a_gap = gap(c.a_major == Major::k ? c.k : c.m, c.operand_dtype);
  c.b_gap = gap(c.b_major == Major::k ? c.k : c.n, c.operand_dtype);
  c.d_gap = gap(c.d_major == Major::m ? c.m : c.n, c.output_dtype);
  c.a_skip = skip(), c.b_skip = skip(), c.d_skip = skip();
  c.saved_gap = static_cast<std::int64_t>(random() % 9);
  c.bias = coin(3);
  c.activation = coin(2) ? Activation::none : static_cast<Activation>(random() % 4);
  c.saved_input = coin(4);
  c.derivative = coin(3) ? static_cast<Activation>(random() % 4) : Activation::none;
  c.residual = coin(3) ? static_cast<Residual>(random() % 3) : Residual::none;
  c.accumulate = coin(3);
  c.bias_gradient = coin(3) ? static_cast<BiasGradient>(random() % 3) : BiasGradient::none;
  c.values = coin(2) ? Values::small_integers : Values::random;
  return c;
}

TEST_F(GpuGemv, RandomMatricesTimesAFewVectorsAgreeWithNaive) {
  std::mt19937 random(20261128);
  std::map<std::string, int> counts;
  for (int i = 0; i < 600 && !HasFailure(); ++i) {
    SCOPED_TRACE(concat("problem ", i));
    expect_as_naive(random_gemv(random), random, counts);
  }
  for (const auto& [row, count] : counts) std::printf("[          ] %s: %d\n", row.c_str(), count);
  for (const char* row : {"gemv_dot", "gemv_dot_mma", "gemv_axpy", "gemv_axpy_mma"}) EXPECT_GE(counts[row], 100) << row;
}

// Every first element of a row modulo 16 bytes, of the matrix and of the vectors, beside ends of K within a word.
TEST_F(GpuGemv, RowsBeginAnywhere) {
  std::mt19937 random(3);
  std::map<std::string, int> counts;
  for (const DType dtype : {DType::bf16, DType::f32}) {
    for (const Major a_major : {Major::k, Major::m}) {
      for (std::int64_t skip = 0; skip < 8 && !HasFailure(); ++skip) {
        for (const std::int64_t k : {5, 8, 16, 135, 1000, 1031}) {
          Case c = {.a_major = a_major, .b_major = skip % 2 == 0 ? Major::k : Major::n, .operand_dtype = dtype, .output_dtype = dtype};
          c.side_dtype = dtype, c.m = 203, c.n = 1 + (3 * skip + k) % kMaxVectors, c.k = k;
          c.a_skip = skip, c.b_skip = (5 * skip) % 8, c.a_gap = (skip + k) % 4, c.b_gap = skip % 3;
          expect_as_naive(c, random, counts);
        }
      }
    }
  }
  EXPECT_GE(counts.size(), 4u);
}

// So many launches on one stream, parts of K in all of them: what one leaves of the stream's flags, the next finds.
TEST_F(GpuGemv, PartsOfKMeetLaunchAfterLaunch) {
  std::mt19937 random(4);
  std::map<std::string, int> counts;
  for (int i = 0; i < 20 && !HasFailure(); ++i) {
    for (const Major a_major : {Major::k, Major::m}) {
      const int parts = i % 2 == 0 ? 7 : 13;  // in one group, and in two
      Case c = {.a_major = a_major, .operand_dtype = DType::bf16, .output_dtype = DType::bf16, .side_dtype = DType::bf16};
      c.m = 96, c.n = 3, c.k = 16384, c.bias = true;
      c.tile = {.m = a_major == Major::k ? 16 : 64, .n = 16};
      const GemmKernel& row = *find_gemm_kernel(a_major == Major::k ? "gemv_dot_mma" : "gemv_axpy_mma");
      Operands ours(c, random), expected = ours;
      EXPECT_EQ(row.plan(problem_of(ours.args(c)), c.tile, device_, parts).split, parts);
      run_on(row, c, ours, parts);
      Case by_naive = c;
      by_naive.tile = kCudaNaiveKernel.tiles.front();
      run_on(kCudaNaiveKernel, by_naive, expected);
      compare(ours, expected, c, sums_of(c));
    }
  }
}

TEST_F(GpuGemv, ChoiceOnDeviceIsAGemv) {
  GemmProblem problem = {.m = 8192, .n = 4, .k = 4096, .operand_dtype = DType::bf16, .output_dtype = DType::bf16};
  problem.a_pitch = problem.b_pitch = 4096, problem.d_pitch = 8192;
  problem.a_alignment = problem.b_alignment = problem.d_alignment = 128;
  EXPECT_EQ(name_of(choose(problem, device_).composition), "gemv_dot_mma");
}

}  // namespace
}  // namespace tilewave

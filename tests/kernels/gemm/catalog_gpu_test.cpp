// Every CUDA kernel of the catalog over all pairs of what it accepts, on its first tile, and a seeded sample of them on the others:
// against the GPU's naive, bit for bit where sums of small integers are exact, else by relative error; twice with equal bits.
// Pitch gaps, guards and the memory behind the workspace hold NaN before and after. The GPU's naive has the CPU's bits.
#include <array>
#include <cstdlib>
#include <gtest/gtest.h>
#include <initializer_list>
#include <set>
#include <string>
#include <utility>

#include "kernels/gemm/catalog.h"
#include "kernels/gemm/reference/libraries.h"
#include "kernels/gemm/reference/naive.h"
#include "kernels/gemm/sm90/persistent_data_parallel.h"
#include "kernels/gemm/sm90/persistent_deferred.h"
#include "kernels/gemm/sm90/persistent_ping_pong.h"
#include "kernels/gemm/sm90/persistent_ping_pong_swap_ab.h"
#include "kernels/gemm/sm90/unaligned.h"
#include "tests/kernels/gemm/gpu_gemm.h"

namespace tilewave {
namespace {

using namespace gemm_sweep;

const Lengths kGpuLengths = {.ks = {1, 2, 7, 63, 64, 72, 129, 200, 520, 4099}, .most_work = 96 << 20};
constexpr std::size_t kSample = 48;  // cases of every tile but the first

// A few small cases of each row where TILEWAVE_GEMM_CASES says how many: what a sanitizer has the time for.
std::size_t few_cases() {
  const char* const few = std::getenv("TILEWAVE_GEMM_CASES");
  return few == nullptr ? 0 : std::strtoul(few, nullptr, 10);
}

// All rows, or the one that TILEWAVE_GEMM_ROW names.
bool is_wanted(const GemmKernel& row) {
  const char* const wanted = std::getenv("TILEWAVE_GEMM_ROW");
  return wanted == nullptr || name_of(row) == wanted;
}

class GpuGemmCatalog : public GpuGemmTest {
 protected:
  void expect_as_naive(const GemmKernel& row, const Case& c, Operands ours) {
    SCOPED_TRACE(concat(name_of(row), "/", text(c)));
    Operands expected = ours;
    run_on(row, c, ours);
    Case by_naive = c;
    by_naive.tile = kCudaNaiveKernel.tiles.front();
    run_on(kCudaNaiveKernel, by_naive, expected);
    compare(ours, expected, c, sums_of(c));
  }
};

TEST_F(GpuGemmCatalog, NaiveHasTheBitsOfTheCpu) {
  CpuQueue cpu = make_cpu_queue(0);
  std::mt19937 random(13);
  for (const Case& c : cases_of(kCudaNaiveKernel, device_, kCudaNaiveKernel.tiles, {.ks = {1, 2, 7, 64, 257}})) {
    SCOPED_TRACE(text(c));
    Operands ours(c, random), expected = ours;
    run_on(kCudaNaiveKernel, c, ours);
    GemmArgs args = expected.args(c);
    const GemmPlan plan = kNaiveKernel.plan(problem_of(args), kNaiveKernel.tiles.front(), probe_cpu(thread_count(cpu)), 0);
    args.plan = &plan;
    run(cpu, args);
    const auto gelu = [](Activation which) { return which == Activation::gelu_tanh || which == Activation::gelu_erf; };
    if (gelu(c.activation) || gelu(c.derivative)) {
      compare(ours, expected, c, sums_of(c));
    } else {
      EXPECT_TRUE(ours.d == expected.d && ours.output_sums == expected.output_sums);
    }
    EXPECT_TRUE(ours.saved_input == expected.saved_input && ours.bias_gradient == expected.bias_gradient);
    if (HasFailure()) return;
  }
}

TEST_F(GpuGemmCatalog, EveryRowAgreesWithNaive) {
  int rows = 0;
  for (const GemmKernel* row : gemm_catalog()) {
    if (row->launch_cuda == nullptr || row == &kCudaNaiveKernel || !is_wanted(*row)) continue;
    ++rows;
    std::mt19937 random(11);
    std::vector<Case> cases = cases_of(*row, device_, row->tiles.first(1), kGpuLengths);
    EXPECT_GE(cases.size(), 30u) << name_of(*row);
    if (row->tiles.size() > 1) {
      std::vector<Case> others = cases_of(*row, device_, row->tiles.subspan(1), kGpuLengths);
      std::shuffle(others.begin(), others.end(), random);
      others.resize(std::min(others.size(), kSample * (row->tiles.size() - 1)));
      cases.insert(cases.end(), others.begin(), others.end());
    }
    if (few_cases() > 0) {
      std::erase_if(cases, [](const Case& c) { return c.m * c.n * c.k > (2 << 20); });
      std::shuffle(cases.begin(), cases.end(), random);
      cases.resize(std::min(cases.size(), few_cases()));
    }
    int refused = 0, failed = 0;
    for (const Case& c : cases) {
      SCOPED_TRACE(concat(name_of(*row), "/", text(c)));
      Operands ours(c, random), expected = ours, again = ours;
      if (!row->refuse(problem_of(ours.args(c)), device_, {&c.tile, 1}).empty()) {
        ++refused;
        continue;
      }
      run_on(*row, c, ours);
      Case by_naive = c;
      by_naive.tile = kCudaNaiveKernel.tiles.front();
      run_on(kCudaNaiveKernel, by_naive, expected);
      compare(ours, expected, c, sums_of(c));
      run_on(*row, c, again);
      EXPECT_TRUE(again.d == ours.d && again.saved_input == ours.saved_input && again.bias_gradient == ours.bias_gradient)
          << "other bits in a second run";
      if (HasFatalFailure()) return;
      if (HasFailure() && ++failed == 4) return;
    }
    EXPECT_LE(refused, static_cast<int>(cases.size()) / (few_cases() > 0 ? 1 : 4)) << name_of(*row);
    std::printf("[          ] %s: %zu cases, %d refused\n", name_of(*row).c_str(), cases.size(), refused);
  }
  EXPECT_GE(rows, 1);
}

// D's last tiles along its columns are a small part of one, and more than half of one along its rows: what a warp skips there takes
// nothing from what it does not.
TEST_F(GpuGemmCatalog, ABiasReachesEveryPartOfATile) {
  int runs = 0;
  for (const GemmKernel* row : gemm_catalog()) {
    if (row->launch_cuda == nullptr || row->reference || !row->tensor_cores || !is_wanted(*row)) continue;
    std::mt19937 random(15);
    for (const Tile tile : row->tiles) {
      for (const Major d_major : {Major::m, Major::n}) {
        const auto [rows, cols] = in_memory({.d_major = d_major}, tile);
        for (const std::int64_t last : {24, 64, 72}) {  // columns
          Case c = {.d_major = d_major, .operand_dtype = DType::bf16, .output_dtype = DType::bf16, .side_dtype = DType::bf16, .tile = tile};
          (d_major == Major::m ? c.n : c.m) = 2 * rows - 8;
          (d_major == Major::m ? c.m : c.n) = 2 * cols + last;
          c.k = 72, c.bias = true;
          Operands operands(c, random);
          if (!row->refuse(problem_of(operands.args(c)), device_).empty()) continue;
          expect_as_naive(*row, c, operands);
          ++runs;
        }
      }
    }
  }
  EXPECT_GE(runs, 1);
}

// The sweep asks for sums of D by themselves, and cuBLASLt has them beside a GELU's derivative alone.
TEST_F(GpuGemmCatalog, CublasLtSumsDBesideAGelusDerivative) {
  std::mt19937 random(16);
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const auto& [m, n, k] : {std::array{1024, 512, 256}, {4096, 381, 1024}, {768, 1000, 520}}) {
      Case c = {.a_major = Major::m, .operand_dtype = dtype, .output_dtype = dtype, .side_dtype = dtype, .tile = {.m = 1, .n = 1}};
      c.m = m, c.n = n, c.k = k, c.saved_gap = 0;
      c.derivative = Activation::gelu_tanh, c.output_sums = true;
      c.values = Values::random;
      expect_as_naive(kCublasLtKernel, c, Operands(c, random));
    }
  }
}

// Some columns of a wider matrix: its first row starts on no more than the others do.
TEST_F(GpuGemmCatalog, AFirstRowStartsAnywhere) {
  int runs = 0;
  for (const GemmKernel* row : gemm_catalog()) {
    if (row->launch_cuda == nullptr || row->reference || row == &kCudaNaiveKernel) continue;
    std::mt19937 random(14);
    for (const Major b_major : {Major::k, Major::n}) {
      for (const std::int64_t skip : {1, 2, 4}) {
        for (const std::int64_t k : {40, 392}) {
          Case c = {.a_major = Major::m, .b_major = b_major, .operand_dtype = DType::bf16, .output_dtype = DType::bf16};
          c.side_dtype = DType::bf16, c.tile = row->tiles.front(), c.m = 200, c.n = 137, c.k = k;
          const std::int64_t cols = b_major == Major::k ? c.k : c.n;
          c.b_gap = round_up(cols, 8) + skip - cols, c.b_skip = skip;
          Operands operands(c, random);
          if (!row->refuse(problem_of(operands.args(c)), device_).empty()) continue;
          expect_as_naive(*row, c, operands);
          ++runs;
        }
      }
    }
  }
  EXPECT_GE(runs, 1);
}

// The sweep's outputs are of few tiles; here blocks that stay take one after another.
TEST_F(GpuGemmCatalog, BlocksThatStayTakeTileAfterTile) {
  int runs = 0;
  for (const GemmKernel* row : gemm_catalog()) {
    if (row->launch_cuda == nullptr || row->reference || !row->tensor_cores || !is_wanted(*row)) continue;
    std::mt19937 random(12);
    const Tile tile = row->tiles.front();
    Case sums = {.a_major = Major::m, .b_major = Major::n, .operand_dtype = DType::bf16, .output_dtype = DType::bf16, .tile = tile};
    sums.m = 13 * tile.m - 24, sums.n = 14 * tile.n - 8, sums.k = 392, sums.side_dtype = DType::bf16;
    Case into_fp32 = sums, ragged = sums, activated = sums, with_side = sums, packed_d = sums, packed_b = sums, packed_k = sums;
    into_fp32.output_dtype = DType::f32, into_fp32.accumulate = true, into_fp32.bias_gradient = BiasGradient::stored;
    ragged.m -= 3;  // rows end within 16 bytes, which the last tiles of a row have to mind
    ragged.a_gap = ragged.d_gap = gap_of(Pitch::to_16_bytes, ragged.m, DType::bf16);
    activated = ragged, with_side = ragged;
    activated.bias = true, activated.activation = Activation::relu;
    with_side.residual = Residual::in_place;
    Case forward = activated, dgrad = ragged, whole_forward = sums, whole_dgrad = sums, copied_forward = sums, relu_dgrad = sums;
    for (Case* const c : {&forward, &whole_forward, &copied_forward}) {
      c->a_major = c->b_major = Major::k;
      c->bias = c->saved_input = true, c->activation = Activation::gelu_tanh;
    }
    for (Case* const c : {&dgrad, &whole_dgrad}) c->b_major = Major::k, c->derivative = Activation::gelu_tanh;
    relu_dgrad.b_major = Major::k, relu_dgrad.derivative = Activation::relu, relu_dgrad.k = 520;
    forward.a_gap = 0;
    whole_forward.saved_gap = 8;                                        // its rows start on 16 bytes, as D's do
    copied_forward.saved_gap = 3;                                       // and these do not, though they are whole eights
    packed_d.a_major = packed_d.b_major = packed_b.b_major = Major::k;  // a vocabulary that no one padded: forward, dgrad and wgrad
    packed_d.m = 4095, packed_b.k -= 1, packed_k.n -= 1;                // 8,190 bytes: one word of 16 more where they begin late in one
    Case last_columns = sums, last_column = sums;                       // of a vocabulary that is no multiple of eight, in an aligned pitch
    for (Case* const c : {&last_columns, &last_column}) c->a_major = c->b_major = Major::k;
    last_columns.m -= 1, last_column.m -= 7, last_column.k = 389;
    for (Case* const c : {&last_columns, &last_column}) {
      c->a_gap = c->b_gap = gap_of(Pitch::to_16_bytes, c->k, DType::bf16);
      c->d_gap = gap_of(Pitch::to_16_bytes, c->m, DType::bf16);
    }
    Case panels = sums, panels_beside_rows = sums;  // operands across K whose rows are whole 128 bytes
    for (Case* const c : {&panels, &panels_beside_rows}) c->m = 13 * tile.m, c->n = 14 * tile.n;
    panels_beside_rows.b_major = Major::k;
    Case fp32_in_parts = into_fp32, forward_in_parts = forward, dgrad_in_parts = whole_dgrad, sums_in_parts = sums;
    Case columns_in_parts = last_columns;
    // Enough of K for two parts of the tiles that whole waves leave.
    for (Case* const c : {&fp32_in_parts, &forward_in_parts, &dgrad_in_parts, &sums_in_parts, &columns_in_parts}) c->k = 1096;
    for (const Case& c :
         {sums,          into_fp32,        ragged,         activated,     with_side,        forward,      dgrad,      whole_forward,
          whole_dgrad,   copied_forward,   relu_dgrad,     packed_d,      packed_b,         packed_k,     panels,     panels_beside_rows,
          fp32_in_parts, forward_in_parts, dgrad_in_parts, sums_in_parts, columns_in_parts, last_columns, last_column}) {
      Operands operands(c, random);
      const GemmProblem problem = problem_of(operands.args(c));
      if (!row->refuse(problem, device_, {&tile, 1}).empty()) continue;
      const GemmPlan plan = row->plan(problem, tile, device_, 0);
      if (plan.blocks >= plan.tiling.tiles) continue;
      expect_as_naive(*row, c, operands);
      ++runs;
    }
  }
  EXPECT_GE(runs, 1);
}

// In more than two waves blocks share the loads of their columns, two and two; the last pair's second block has no tile here.
TEST_F(GpuGemmCatalog, BlocksThatShareColumnsTakeTileAfterTile) {
  std::set<std::pair<std::string, std::string_view>> in_pairs;  // rows and cases
  for (const GemmKernel* row : gemm_catalog()) {
    if (row->launch_cuda == nullptr || row->reference || !row->tensor_cores || !is_wanted(*row)) continue;
    std::mt19937 random(15);
    for (const Tile tile : row->tiles) {
      Case wgrad = {.a_major = Major::m, .b_major = Major::n, .operand_dtype = DType::bf16, .output_dtype = DType::bf16, .tile = tile};
      const std::int64_t high = 17, wide = ceil_div(2 * device_.sm_count, high) + 1;  // tiles
      wgrad.m = wide * tile.m - 24, wgrad.n = high * tile.n - 8, wgrad.k = 328, wgrad.side_dtype = DType::bf16;
      Case into_fp32 = wgrad, dgrad = wgrad, forward = wgrad;
      into_fp32.output_dtype = DType::f32, into_fp32.accumulate = true;
      dgrad.b_major = forward.a_major = forward.b_major = Major::k;
      Case last_columns = forward, biased = forward;
      last_columns.m -= 3, last_columns.n -= 3;
      last_columns.d_gap = gap_of(Pitch::to_16_bytes, last_columns.m, DType::bf16);
      biased.bias = true;
      Case activated = biased;
      activated.saved_input = true, activated.saved_gap = 8, activated.activation = Activation::gelu_tanh;
      Case derivative = dgrad;
      derivative.derivative = Activation::gelu_tanh, derivative.saved_gap = 8;
      Case odd_rows = into_fp32, rows_of_fours = wgrad;  // of K, that no one padded
      odd_rows.n -= 1, rows_of_fours.n -= 4;
      const std::pair<std::string_view, const Case*> cases[] = {{"wgrad", &wgrad},
                                                                {"into_fp32", &into_fp32},
                                                                {"dgrad", &dgrad},
                                                                {"forward", &forward},
                                                                {"last_columns", &last_columns},
                                                                {"biased", &biased},
                                                                {"activated", &activated},
                                                                {"derivative", &derivative},
                                                                {"odd_rows", &odd_rows},
                                                                {"rows_of_fours", &rows_of_fours}};
      for (const auto& [name, c] : cases) {
        Operands operands(*c, random);
        const GemmProblem problem = problem_of(operands.args(*c));
        if (!row->refuse(problem, device_, {&tile, 1}).empty()) continue;
        const GemmPlan plan = row->plan(problem, tile, device_, 0);
        if (plan.cluster != 2 || plan.split != 1) continue;
        expect_as_naive(*row, *c, operands);
        in_pairs.emplace(name_of(*row), name);
      }
    }
  }
  const auto expect = [&](const GemmKernel& row, std::initializer_list<std::string_view> cases) {
    if (device_.capability != 90 || !is_wanted(row)) return;
    for (const std::string_view one : cases) EXPECT_TRUE(in_pairs.contains({name_of(row), one})) << name_of(row) << ", " << one;
  };
  expect(kPersistentDeferredKernel, {"wgrad", "dgrad", "forward", "last_columns", "biased", "activated"});
  expect(kPersistentDataParallelKernel, {"wgrad", "into_fp32", "dgrad", "forward", "biased", "activated"});
  expect(kPersistentPingPongKernel, {"wgrad", "into_fp32", "dgrad", "forward", "biased", "activated"});
  expect(kPersistentPingPongSwapAbKernel, {"dgrad", "forward", "last_columns", "biased", "activated", "derivative"});
  expect(kUnalignedKernel, {"odd_rows", "rows_of_fours"});
}

// Consumers that take turns, each at two tiles and more, some of which end element by element or leave a few columns to the registers.
TEST_F(GpuGemmCatalog, ConsumersThatTakeTurnsEndTilesInEveryWay) {
  const GemmKernel& row = kPersistentPingPongSwapAbKernel;
  if (device_.capability != 90 || !is_wanted(row)) GTEST_SKIP() << name_of(row) << " is not for this GPU, or not asked for";
  std::mt19937 random(17);
  for (const Tile tile : row.tiles) {
    Case sums = {.operand_dtype = DType::bf16, .output_dtype = DType::bf16, .side_dtype = DType::bf16, .tile = tile};
    sums.m = 20 * tile.m - 27, sums.n = 6 * device_.sm_count / 20 * tile.n - 8, sums.k = 200;
    sums.d_gap = sums.saved_gap = gap_of(Pitch::to_16_bytes, sums.m, DType::bf16);
    Case biased = sums, activated = sums, saved = sums;
    biased.bias = activated.bias = saved.bias = true;
    activated.activation = Activation::relu;
    saved.activation = Activation::gelu_tanh, saved.saved_input = true;
    Case plain = sums;
    plain.m += 3, plain.d_gap = plain.saved_gap = 0;
    Case plain_biased = plain, biased_in_fp32 = plain;
    plain_biased.bias = biased_in_fp32.bias = true;
    biased_in_fp32.side_dtype = DType::f32;
    Case whole_activated = plain_biased, whole_saved = plain_biased, relu_derivative = plain, gelu_derivative = plain;
    whole_activated.activation = Activation::relu;
    whole_saved.activation = Activation::gelu_tanh, whole_saved.saved_input = true, whole_saved.saved_gap = 8;
    relu_derivative.derivative = Activation::relu, gelu_derivative.derivative = Activation::gelu_erf, gelu_derivative.saved_gap = 8;
    Case beside_residual = plain_biased, in_place = plain, one_block_of_k = gelu_derivative;
    beside_residual.residual = Residual::beside, in_place.residual = Residual::in_place;
    one_block_of_k.k = 40;  // the other consumer's products end before the epilogue that lies under them
    for (const Case& c : {sums, biased, activated, saved, plain, plain_biased, biased_in_fp32, whole_activated, whole_saved,
                          relu_derivative, gelu_derivative, beside_residual, in_place, one_block_of_k}) {
      Operands operands(c, random);
      const GemmProblem problem = problem_of(operands.args(c));
      ASSERT_EQ(row.refuse(problem, device_), "");
      const GemmPlan plan = row.plan(problem, tile, device_, 0);
      EXPECT_GE(plan.tiling.tiles, 5 * plan.blocks) << "each consumer takes a second tile";
      expect_as_naive(row, c, operands);
    }
  }
}

}  // namespace
}  // namespace tilewave

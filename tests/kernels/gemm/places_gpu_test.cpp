// Blocks that take the tiles of their SMs: every form of the epilogue, waves full and half full, and SMs that another kernel holds, so
// that blocks find their tiles taken and others left.
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "kernels/gemm/catalog.h"
#include "kernels/gemm/ladder/warp_specialized.h"
#include "kernels/gemm/reference/naive.h"
#include "kernels/gemm/sm90/one_wave_sliced_k.h"
#include "kernels/gemm/sm90/one_wave_swap_ab.h"
#include "tests/kernels/gemm/gpu_gemm.h"

namespace tilewave {
namespace {

using namespace gemm_sweep;

const GemmKernel* const kAssignedKernels[] = {&kOneWaveSwapAbKernel, &kOneWaveSlicedKKernel};

class GpuGemmPlaces : public GpuGemmTest {
 protected:
  void SetUp() override {
    GpuGemmTest::SetUp();
    if (IsSkipped()) return;
    if (device_.capability != 90) GTEST_SKIP() << device_.name << " has no wgmma";
  }

  // A weight's gradient of so many tiles, its last ones in part beyond D, and of as many tokens as L2 does not keep.
  Case gradient(Tile tile, std::int64_t tiles_m, std::int64_t tiles_n) const {
    const std::int64_t features = tiles_m * tile.m + tiles_n * tile.n - 32;
    return {.a_major = Major::m,
            .b_major = Major::n,
            .operand_dtype = DType::bf16,
            .output_dtype = DType::bf16,
            .side_dtype = DType::bf16,
            .tile = tile,
            .m = tiles_m * tile.m - 24,
            .n = tiles_n * tile.n - 8,
            .k = round_up(device_.l2_bytes / (2 * features), 8) + 8};
  }
  Operands by_naive(const Case& c, Operands operands) {
    Case naive = c;
    naive.tile = kCudaNaiveKernel.tiles.front();
    run_on(kCudaNaiveKernel, naive, operands);
    return operands;
  }
};

TEST_F(GpuGemmPlaces, EveryTileIsDoneOnce) {
  std::mt19937 random(21);
  for (const GemmKernel* row : kAssignedKernels) {
    for (const Tile tile : row->tiles) {
      const std::int64_t high = device_.sm_count / 4;
      const Case full = gradient(tile, 4, high), odd = gradient(tile, 3, high - 2);
      Case into_fp32 = full;
      into_fp32.output_dtype = DType::f32, into_fp32.accumulate = true;
      std::vector<Case> cases = {full, odd, into_fp32};
      if (row == &kOneWaveSwapAbKernel) {  // the other one has places for sums alone
        Case biased = full, activated = full, with_side = full;
        with_side.residual = Residual::in_place;
        biased.bias = activated.bias = activated.saved_input = true;
        activated.saved_gap = 8, activated.activation = Activation::gelu_tanh;
        cases.insert(cases.end(), {biased, activated, with_side});
      }
      for (const Case& c : cases) {
        SCOPED_TRACE(concat(name_of(*row), "/", text(c)));
        Operands ours(c, random);
        const GemmProblem problem = problem_of(ours.args(c));
        ASSERT_EQ(row->refuse(problem, device_), "");
        EXPECT_EQ(row->plan(problem, tile, device_, 0).raster.kind, RasterKind::patches);
        const Operands expected = by_naive(c, ours);
        run_on(*row, c, ours);
        compare(ours, expected, c, sums_of(c));
      }
    }
  }
}

// On another stream blocks of one SM each, launch after launch, come and go meanwhile.
TEST_F(GpuGemmPlaces, BlocksThatFindTheirTileTakenTakeAnother) {
  Queue other = make_cuda_queue(device_.index);
  const Tile tile = kWarpSpecializedKernel.tiles.front();
  Case held = gradient(tile, 5, 5);
  held.k = 16384;
  const std::int64_t rows = 5 * tile.m, cols = 5 * tile.n, bytes = (held.k * (rows + cols) + rows * cols) * size_of(held.operand_dtype);
  std::byte* const memory = static_cast<std::byte*>(allocate(other, bytes));
  fill_bytes(other, memory, 0, bytes);
  const auto view = [&](std::int64_t from, std::int64_t lines, std::int64_t width) {
    std::byte* const first = memory + from * size_of(held.operand_dtype);
    return MatrixView{.data = first, .rows = lines, .cols = width, .ld = width, .dtype = held.operand_dtype};
  };
  GemmArgs holds = {.a = view(0, held.k, rows), .b = view(held.k * rows, held.k, cols), .d = view(held.k * (rows + cols), cols, rows)};
  holds.a_major = Major::m, holds.b_major = Major::n;
  const GemmPlan plan = kWarpSpecializedKernel.plan(problem_of(holds), tile, device_, 0);
  holds.plan = &plan;

  std::mt19937 random(22);
  for (const GemmKernel* row : kAssignedKernels) {
    const Case c = gradient(row->tiles.front(), 4, device_.sm_count / 4);
    SCOPED_TRACE(concat(name_of(*row), "/", text(c)));
    const Operands inputs(c, random);
    const Operands expected = by_naive(c, inputs);
    for (int time = 0; time < 8; ++time) {
      Operands ours = inputs;
      for (int launch = 0; launch < 400; ++launch) run(other, holds);
      run_on(*row, c, ours);
      compare(ours, expected, c, sums_of(c));
      synchronize(other);
    }
  }
  release(other, memory);
}

}  // namespace
}  // namespace tilewave

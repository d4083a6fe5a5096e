// Launch upon launch, with nobody waiting between, gives what the same launches give one at a time: where a product's operand is the
// result of the launch before, of the one before that or of none, and where what a launch writes is still being read.
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "kernels/gemm.h"
#include "kernels/gemm/catalog.h"
#include "tests/kernels/gpu.h"

namespace tilewave {
namespace {

using testing_support::GpuTest;

class GpuGemmLaunches : public GpuTest {
 protected:
  static constexpr std::int64_t kSize = 1536, kElements = kSize * kSize;  // long enough that the next launch begins meanwhile
  static constexpr int kInputs = 2, kResults = 5, kSums = 2;
  using Results = std::vector<std::byte>;

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    memory_ = static_cast<std::byte*>(allocate(queue_, kBytes + kWorkspace));
    std::vector<bf16> inputs(kInputs * kElements);
    std::mt19937 random(5);
    std::normal_distribution<float> normal(0.0f, 1.0f / std::sqrt(static_cast<float>(kSize)));  // so that products of products stay near 1
    for (bf16& x : inputs) x = bf16(normal(random));
    copy_to_device(queue_, memory_, inputs.data(), kInputs * kElements * 2);
  }
  void TearDown() override {
    if (memory_ != nullptr) release(queue_, memory_);
  }

  MatrixView matrix(int index) const {
    return {.data = memory_ + index * kElements * 2, .rows = kSize, .cols = kSize, .ld = kSize, .dtype = DType::bf16};
  }
  MatrixView sums(int index) const {
    std::byte* const first = memory_ + (kInputs + kResults) * kElements * 2;
    return {.data = first + index * kElements * 4, .rows = kSize, .cols = kSize, .ld = kSize, .dtype = DType::f32};
  }
  static GemmArgs product(const MatrixView& a, const MatrixView& b, const MatrixView& d) {
    GemmArgs args;
    args.a = a, args.b = b, args.d = d;
    return args;
  }
  static GemmArgs gradient(const MatrixView& a, const MatrixView& b, const MatrixView& d) {
    GemmArgs args = product(a, b, d);
    args.role = GemmRole::wgrad;
    args.a_major = Major::m, args.b_major = Major::n;
    args.accumulate = d.dtype == DType::f32;
    return args;
  }
  // Inputs 0 and 1, results from 2 on: each is of inputs, of the result just made, or of the one before that.
  std::vector<GemmArgs> round() const {
    return {product(matrix(0), matrix(1), matrix(2)), product(matrix(2), matrix(1), matrix(3)),  product(matrix(0), matrix(3), matrix(4)),
            product(matrix(1), matrix(0), matrix(5)), product(matrix(4), matrix(1), matrix(6)),  gradient(matrix(6), matrix(5), matrix(2)),
            gradient(matrix(0), matrix(1), sums(0)),  gradient(matrix(0), matrix(1), sums(0)),   gradient(matrix(2), matrix(1), sums(1)),
            product(matrix(5), matrix(6), matrix(4)), gradient(matrix(5), matrix(4), matrix(3)), gradient(matrix(0), matrix(3), sums(1))};
  }
  // Rounds of what the row takes of that, one launch upon the other or each alone.
  Results results(const GemmRow& row, Tile tile, bool alone) {
    fill_bytes(queue_, memory_ + kInputs * kElements * 2, 0, kBytes - kInputs * kElements * 2);
    for (int i = 0; i < 4; ++i) {
      for (GemmArgs& args : round()) {
        const GemmProblem problem = problem_of(args);
        if (!row.refuse(problem, device_).empty()) continue;
        const GemmPlan plan = row.plan(problem, tile, device_, 0);
        if (plan.workspace_bytes > kWorkspace) continue;
        args.plan = &plan;
        args.workspace = memory_ + kBytes;
        run(queue_, args);
        if (alone) synchronize(queue_);
      }
    }
    Results all(static_cast<std::size_t>(kBytes));
    copy_to_host(queue_, all.data(), memory_, kBytes);
    return all;
  }

  static constexpr std::int64_t kBytes = (kInputs + kResults) * kElements * 2 + kSums * kElements * 4, kWorkspace = 256 << 20;
  std::byte* memory_ = nullptr;
};

TEST_F(GpuGemmLaunches, WaitForTheOneBefore) {
  for (const GemmRow* row : gemm_catalog()) {
    if (row->backend != Backend::cuda || !row->tensor_cores || row->reference) continue;
    for (const Tile tile : row->tiles) {
      if (!row->fits(tile, device_)) continue;
      SCOPED_TRACE(sentence(row->name, "/", tile.m, "x", tile.n));
      const Results expected = results(*row, tile, true);
      for (int time = 0; time < 3; ++time) ASSERT_EQ(results(*row, tile, false), expected);
    }
  }
}

}  // namespace
}  // namespace tilewave

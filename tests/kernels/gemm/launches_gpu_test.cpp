// Launch upon launch, with nobody waiting between, gives what the same launches give one at a time: where an operand is the result of the
// launch before or of the one before that, and where what a launch writes is what the one before reads.
#include <cmath>
#include <deque>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "kernels/gemm/catalog.h"
#include "kernels/gemm/gemm.h"
#include "tests/kernels/gpu.h"

namespace tilewave {
namespace {

using testing_support::GpuTest;

class GpuGemmLaunches : public GpuTest {
 protected:
  static constexpr std::int64_t kSize = 2048, kElements = kSize * kSize;  // long enough that the next launch begins meanwhile
  static constexpr std::int64_t kFew = 8;                                 // of what a few vectors have
  static constexpr std::int64_t kSmall = 512;                             // for rows whose blocks share a tile's K
  static constexpr int kInputs = 2, kResults = 4;
  using Results = std::vector<std::byte>;
  struct Launch {
    GemmArgs args;
    GemmPlan plan;
  };

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    memory_ = static_cast<std::byte*>(allocate(queue_, kBytes + kWorkspace));
    std::vector<bf16> inputs(kInputs * kElements);
    std::mt19937 random(5);
    std::normal_distribution<float> normal(0.0f, 1.0f / std::sqrt(static_cast<float>(kSize)));  // so that a product's are as large
    for (bf16& x : inputs) x = bf16(normal(random));
    copy_to_device(queue_, memory_, inputs.data(), kInputs * kElements * 2);
  }
  void TearDown() override {
    if (memory_ != nullptr) release(queue_, memory_);
  }

  // Inputs are 0 and 1, results 2 to 5.
  MatrixView matrix(int index) const {
    return {.data = memory_ + index * kElements * 2, .rows = kSize, .cols = kSize, .ld = kSize, .dtype = DType::bf16};
  }
  MatrixView sums() const {
    return {.data = memory_ + (kInputs + kResults) * kElements * 2, .rows = kSize, .cols = kSize, .ld = kSize, .dtype = DType::f32};
  }
  static MatrixView first_of(MatrixView view, std::int64_t rows, std::int64_t cols) {
    view.rows = rows, view.cols = cols;
    return view;
  }
  static MatrixView off_by_one(MatrixView view) {  // rows that start anywhere
    view.data = static_cast<bf16*>(view.data) + 1;
    view.cols = kSize - 8;
    return view;
  }

  MatrixView few_rows(int index) const { return first_of(matrix(index), kFew, kSize); }
  MatrixView few_columns(int index) const { return first_of(matrix(index), kSize, kFew); }
  MatrixView short_of(int index) const { return first_of(matrix(index), kSize - 8, kSize); }  // by as much as those are narrow
  static GemmArgs across_k(const MatrixView& a, const MatrixView& b, const MatrixView& d) {
    GemmArgs args = product(a, b, d);
    args.role = GemmRole::dgrad;
    args.a_major = Major::m;
    return args;
  }

  static GemmArgs product(const MatrixView& a, const MatrixView& b, const MatrixView& d) {
    GemmArgs args;
    args.a = a, args.b = b, args.d = d;
    return args;
  }
  GemmArgs product(int a, int b, int d) const { return product(matrix(a), matrix(b), matrix(d)); }
  static GemmArgs gradient(const MatrixView& a, const MatrixView& b, const MatrixView& d) {
    GemmArgs args = product(a, b, d);
    args.role = GemmRole::wgrad;
    args.a_major = Major::m, args.b_major = Major::n;
    args.accumulate = d.dtype == DType::f32;
    return args;
  }
  GemmArgs gradient(int a, int b, int d) const { return gradient(matrix(a), matrix(b), matrix(d)); }
  GemmArgs small_gradient(int a, int b, int d) const {
    return gradient(first_of(matrix(a), kSize, kSmall), first_of(matrix(b), kSize, kSmall), first_of(matrix(d), kSmall, kSmall));
  }
  GemmArgs activated(int a, int b, int d, int input) const {
    GemmArgs args = product(a, b, d);
    args.activation = Activation::gelu_tanh;
    args.saved_input = matrix(input);
    return args;
  }
  GemmArgs derived(int a, int b, int d, int input, Activation activation) const {
    GemmArgs args = product(a, b, d);
    args.role = GemmRole::dgrad;
    args.a_major = Major::m;
    args.derivative_of = matrix(input);
    args.derivative = activation;
    return args;
  }
  std::vector<GemmArgs> round() const {
    return {// An operand comes from the launch before, the other one does; the one before is still being read; from two before.
            product(0, 1, 2), product(2, 1, 3), product(0, 3, 4), product(1, 0, 3), product(4, 1, 5), gradient(0, 1, 2), gradient(2, 1, 3),
            gradient(0, 3, 4), gradient(1, 0, 3), gradient(4, 1, 5), small_gradient(0, 1, 2), small_gradient(2, 1, 3),
            small_gradient(0, 3, 4), small_gradient(1, 0, 3), small_gradient(4, 1, 5),
            // What is added to comes from the launch before too.
            gradient(matrix(5), matrix(4), sums()), gradient(matrix(0), matrix(1), sums()),
            // So do side inputs.
            activated(0, 1, 2, 3), derived(0, 1, 4, 3, Activation::gelu_tanh), derived(0, 4, 5, 2, Activation::relu),
            derived(1, 0, 2, 5, Activation::relu), activated(2, 1, 4, 5),
            // And what a row copies to where its rows are aligned.
            product(off_by_one(matrix(4)), off_by_one(matrix(1)), matrix(2)),
            product(off_by_one(matrix(2)), off_by_one(matrix(5)), matrix(3)),
            // And the rows of one operand alone, along K and across it, which some rows take by residue.
            across_k(short_of(1), off_by_one(matrix(4)), matrix(2)), across_k(short_of(1), off_by_one(matrix(2)), matrix(3)),
            product(short_of(1), matrix(3), off_by_one(matrix(5))), product(short_of(1), matrix(4), off_by_one(matrix(5))),
            gradient(matrix(1), off_by_one(matrix(3)), first_of(matrix(4), kSize - 8, kSize)),
            gradient(matrix(1), off_by_one(matrix(4)), first_of(matrix(5), kSize - 8, kSize)),
            // A few tokens, outputs or columns, of operands along K and across it.
            product(matrix(1), few_rows(2), few_rows(3)), product(matrix(0), few_rows(3), few_rows(4)),
            product(few_rows(3), matrix(1), few_columns(5)), product(few_rows(5), matrix(0), few_columns(2)),
            across_k(matrix(1), few_rows(2), few_rows(3)), across_k(matrix(0), few_rows(3), few_rows(5)),
            gradient(matrix(1), few_columns(4), few_rows(2)), gradient(matrix(0), few_columns(5), few_rows(4)),
            gradient(few_columns(2), matrix(1), few_columns(3)), gradient(few_columns(3), matrix(0), few_columns(4))};
  }
  // Of that what the row takes, planned.
  std::deque<Launch> launches_of(const GemmKernel& row, Tile tile) const {
    std::deque<Launch> launches;
    for (const GemmArgs& args : round()) {
      const GemmProblem problem = problem_of(args);
      if (!row.refuse(problem, device_, {&tile, 1}).empty()) continue;
      launches.push_back({args, row.plan(problem, tile, device_, 0)});
      launches.back().args.plan = &launches.back().plan;
      launches.back().args.workspace = memory_ + kBytes;
      EXPECT_LE(launches.back().plan.workspace_bytes, kWorkspace);
    }
    return launches;
  }
  // Rounds of it, one launch upon the other or each alone.
  Results results(const std::deque<Launch>& launches, bool alone) {
    fill_bytes(queue_, memory_ + kInputs * kElements * 2, 0, kBytes - kInputs * kElements * 2);
    for (int i = 0; i < 4; ++i) {
      for (const Launch& launch : launches) {
        run(queue_, launch.args);
        if (alone) synchronize(queue_);
      }
    }
    Results all(static_cast<std::size_t>(kBytes));
    copy_to_host(queue_, all.data(), memory_, kBytes);
    return all;
  }

  static constexpr std::int64_t kBytes = (kInputs + kResults) * kElements * 2 + kElements * 4, kWorkspace = 256 << 20;
  std::byte* memory_ = nullptr;
};

TEST_F(GpuGemmLaunches, WaitForTheOneBefore) {
  for (const GemmKernel* row : gemm_catalog()) {
    if (row->launch_cuda == nullptr || !row->tensor_cores || row->reference) continue;
    for (const Tile tile : row->tiles) {
      SCOPED_TRACE(concat(name_of(*row), "/", tile.m, "x", tile.n));
      const std::deque<Launch> launches = launches_of(*row, tile);
      const bool fits = row->shared_bytes == nullptr || row->shared_bytes(tile) <= device_.shared_bytes;
      EXPECT_TRUE(device_.capability != 90 || !fits || launches.size() > 1) << "the test has nothing for this kernel";
      const Results expected = results(launches, true);
      for (int time = 0; time < 2; ++time) ASSERT_EQ(results(launches, false), expected);
    }
  }
}

}  // namespace
}  // namespace tilewave

// Matrices past 2^31 elements on a GPU: what an operation makes of the last rows is what it makes of those rows alone.
#include <numeric>

#include "kernels/core/beside_steps.h"
#include "kernels/gemm/catalog.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/reference/naive.h"
#include "kernels/ops/activation.h"
#include "kernels/ops/add.h"
#include "kernels/ops/cross_entropy.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/fill.h"
#include "kernels/ops/layer_norm.h"
#include "kernels/ops/softmax.h"
#include "kernels/ops/squash.h"
#include "tests/kernels/gpu_operations.h"

namespace tilewave {
namespace {

using namespace testing_support;

class GpuLargeMatrix : public GpuTest {
 protected:
  static constexpr std::int64_t kRows = (std::int64_t{1} << 16) + 1, kCols = std::int64_t{1} << 15, kLast = 3;  // kLast: rows compared
  static constexpr std::int64_t kBytes = kRows * kCols * 2;

  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped() && free_bytes(queue_).value_or(0) < 4 * kBytes) GTEST_SKIP() << "too little memory is free";
  }
  void TearDown() override {
    for (void* data : owned_) release(queue_, data);
  }

  void* take(std::int64_t bytes) { return owned_.emplace_back(allocate(queue_, bytes)); }
  MatrixView matrix(std::int64_t rows, std::int64_t cols, DType dtype = DType::bf16) {
    return {.data = take(rows * cols * size_of(dtype)), .rows = rows, .cols = cols, .ld = cols, .dtype = dtype};
  }
  // Normal numbers, made where they lie.
  MatrixView random(std::int64_t rows, std::int64_t cols) {
    const MatrixView view = matrix(rows, cols);
    fill_normal(queue_, view, ++seed_);
    return view;
  }
  // Small integers, the same again after a number of elements that no row's length divides.
  MatrixView integers(std::int64_t rows, std::int64_t cols) {
    const MatrixView view = matrix(rows, cols);
    std::vector<bf16> block((1 << 24) - 3);
    Random random(17);
    std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
    for (bf16& element : block) element = bf16(std::round(3.0F * uniform(random)));
    const std::int64_t elements = rows * cols;
    for (std::int64_t at = 0; at < elements; at += static_cast<std::int64_t>(block.size())) {
      copy_to_device(queue_, static_cast<bf16*>(view.data) + at, block.data(),
                     std::min<std::int64_t>(elements - at, static_cast<std::int64_t>(block.size())) * 2);
    }
    return view;
  }
  static MatrixView last(MatrixView view) {
    view.data = static_cast<std::byte*>(view.data) + (view.rows - kLast) * view.ld * size_of(view.dtype);
    view.rows = kLast;
    return view;
  }
  std::vector<bf16> fetch(const MatrixView& view) {
    std::vector<bf16> elements(static_cast<std::size_t>(view.rows * view.cols));
    copy_to_host(queue_, elements.data(), view.data, static_cast<std::int64_t>(elements.size()) * 2);
    return elements;
  }
  void expect_same(const MatrixView& whole, const MatrixView& alone, const char* operation) {
    const std::vector<bf16> a = fetch(last(whole)), b = fetch(alone);
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].bits, b[i].bits) << operation << ", element " << i << " of the last rows";
      ASSERT_FALSE(std::isnan(to_double(a[i]))) << operation << ", element " << i << " of the last rows";
    }
  }

 private:
  std::vector<void*> owned_;
  std::uint64_t seed_ = 0;
};

TEST_F(GpuLargeMatrix, IsFilledToItsEnd) {
  void* const data = take(kBytes);
  for (const std::int64_t ld : {kCols, kCols - 1}) {  // one long row, and rows with a gap
    const MatrixView y{.data = data, .rows = kRows, .cols = kCols - 2 + (ld == kCols ? 2 : 0), .ld = ld, .dtype = DType::bf16};
    run(queue_, FillArgs{.y = y, .value = static_cast<double>(ld % 7)});
    for (const std::int64_t at : {std::int64_t{0}, (kRows - 1) * ld, (kRows - 1) * ld + y.cols - 1}) {
      bf16 element;
      copy_to_host(queue_, &element, static_cast<bf16*>(data) + at, sizeof(element));
      EXPECT_EQ(to_double(element), static_cast<double>(ld % 7)) << "element " << at;
    }
  }
}

TEST_F(GpuLargeMatrix, OperationsReachItsEnd) {
  const MatrixView x = random(kRows, kCols), y = matrix(kRows, kCols), alone = matrix(kLast, kCols);
  const auto compare = [&](const char* operation, const auto& args) {
    fill_bytes(queue_, y.data, 0xff, kBytes);
    fill_bytes(queue_, alone.data, 0xff, kLast * kCols * 2);
    run(queue_, args(x, y));
    run(queue_, args(last(x), alone));
    expect_same(y, alone, operation);
  };
  compare("add", [](MatrixView a, MatrixView b) { return AddArgs{.a = a, .b = a, .y = b}; });
  compare("gelu", [](MatrixView a, MatrixView b) { return ActivationArgs{.x = a, .y = b, .activation = Activation::gelu_tanh}; });
  compare("gelu_backward",
          [](MatrixView a, MatrixView b) { return ActivationBackwardArgs{.x = a, .dy = a, .dx = b, .activation = Activation::gelu_tanh}; });
  compare("sigmoid", [](MatrixView a, MatrixView b) { return SquashArgs{.x = a, .y = b, .kind = Squash::sigmoid}; });
  compare("tanh_backward", [](MatrixView a, MatrixView b) { return SquashBackwardArgs{.y = a, .dy = a, .dx = b, .kind = Squash::tanh}; });
  compare("softmax_backward", [](MatrixView a, MatrixView b) { return SoftmaxBackwardArgs{.y = a, .dy = a, .dx = b}; });
  compare("softmax", [](MatrixView a, MatrixView b) { return SoftmaxArgs{.x = a, .y = b}; });
  const MatrixView gamma = random(1, kCols), beta = random(1, kCols), mean = matrix(kRows, 1, DType::f32),
                   rstd = matrix(kRows, 1, DType::f32);
  const auto rows_of = [](MatrixView statistics, std::int64_t rows) { return rows == kLast ? last(statistics) : statistics; };
  compare("layer_norm", [&](MatrixView a, MatrixView b) {
    return LayerNormArgs{.x = a, .gamma = gamma, .beta = beta, .y = b, .mean = rows_of(mean, a.rows), .rstd = rows_of(rstd, a.rows)};
  });
  const MatrixView dgamma = matrix(1, kCols, DType::f32), dbeta = matrix(1, kCols, DType::f32);
  const MatrixView partial = matrix(layer_norm_partial_rows(kRows), kCols, DType::f32);
  compare("layer_norm_backward", [&](MatrixView a, MatrixView b) {
    MatrixView chunks = partial;
    chunks.rows = layer_norm_partial_rows(a.rows);
    return LayerNormBackwardArgs{.x = a,
                                 .gamma = gamma,
                                 .mean = rows_of(mean, a.rows),
                                 .rstd = rows_of(rstd, a.rows),
                                 .dy = a,
                                 .dx = b,
                                 .dgamma = dgamma,
                                 .dbeta = dbeta,
                                 .partial = chunks};
  });
}

// A table whose last rows lie past 2^31 elements, read and added to there.
TEST_F(GpuLargeMatrix, ATableIsReachedToItsEnd) {
  const MatrixView table = random(kRows, kCols), y = matrix(kLast, kCols), positions = matrix(1, kCols);
  const MatrixView ids = matrix(1, kLast, DType::i32), position_ids = matrix(1, kLast, DType::i32);
  fill_bytes(queue_, positions.data, 0, kCols * 2);
  fill_bytes(queue_, position_ids.data, 0, kLast * 4);
  std::vector<std::int32_t> last_ids(kLast);
  std::iota(last_ids.begin(), last_ids.end(), static_cast<std::int32_t>(kRows - kLast));
  copy_to_device(queue_, ids.data, last_ids.data(), kLast * 4);
  run(queue_, EmbeddingArgs{.table = table, .positions = positions, .ids = ids, .position_ids = position_ids, .y = y});
  expect_same(table, y, "embedding");

  const MatrixView dtable = matrix(kRows, kCols, DType::f32);
  run(queue_, EmbeddingBackwardArgs{.dy = y,
                                    .ids = ids,
                                    .position_ids = position_ids,
                                    .dtable = dtable,
                                    .dpositions = {},
                                    .order = matrix(2, embedding_order_cols(kLast, kRows, 0), DType::i32),
                                    .sort = matrix(1, embedding_sort_cols(kLast), DType::i32)});
  std::vector<float> gradient(kLast * kCols);
  copy_to_host(queue_, gradient.data(), last(dtable).data, kLast * kCols * 4);
  const std::vector<bf16> expected = fetch(y);
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(gradient[i], static_cast<float>(to_double(expected[i]))) << i;
}

TEST_F(GpuLargeMatrix, LogitsBecomeTheirGradient) {
  const MatrixView logits = random(kRows, kCols), alone = matrix(kLast, kCols);
  const MatrixView labels = matrix(1, kRows, DType::i32), row_loss = matrix(1, kRows, DType::f32), loss = matrix(1, 1, DType::f32);
  std::vector<std::int32_t> ids(kRows);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(7919 * i % kCols);
  copy_to_device(queue_, labels.data, ids.data(), kRows * 4);
  copy_on_device(queue_, alone.data, last(logits).data, kLast * kCols * 2);
  DeviceState state(queue_, {.step = 1, .real_tokens = 4});
  const auto from = [](MatrixView view, std::int64_t rows) {  // the last `rows` columns of a vector
    view.data = static_cast<std::byte*>(view.data) + (view.cols - rows) * 4;
    view.cols = rows;
    return view;
  };
  for (const MatrixView& rows : {logits, alone}) {
    run(queue_, CrossEntropyArgs{.logits = rows,
                                 .labels = from(labels, rows.rows),
                                 .vocabulary = kCols,
                                 .smoothing = 0.1,
                                 .row_loss = from(row_loss, rows.rows),
                                 .loss = loss,
                                 .state = state.get()});
  }
  expect_same(logits, alone, "cross_entropy");
}

TEST_F(GpuLargeMatrix, EveryGemmRowReachesTheEndOfD) {
  constexpr std::int64_t kK = 16;
  const MatrixView a = integers(kCols, kK), b = integers(kRows, kK), d = matrix(kRows, kCols), alone = matrix(kLast, kCols);
  const auto multiply = [&](const GemmKernel& row, const MatrixView& tokens, const MatrixView& to) {
    GemmArgs args{.a = a, .b = tokens, .d = to};
    const GemmPlan plan = row.plan(problem_of(args), row.tiles.front(), device_, 0);
    args.plan = &plan;
    args.workspace = take(std::max<std::int64_t>(plan.workspace_bytes, 256));
    run(queue_, args);
    synchronize(queue_);
  };
  multiply(kCudaNaiveKernel, last(b), alone);
  int rows = 0;
  for (const GemmKernel* row : gemm_catalog()) {
    const GemmArgs args{.a = a, .b = b, .d = d};
    if (row->launch_cuda == nullptr || !row->refuse(problem_of(args), device_).empty()) continue;
    ++rows;
    SCOPED_TRACE(name_of(*row));
    fill_bytes(queue_, d.data, 0xff, kBytes);
    multiply(*row, b, d);
    expect_same(d, alone, "gemm");
  }
  EXPECT_GE(rows, 6);
}

}  // namespace
}  // namespace tilewave

// The seam on a GPU: memory, order, graphs, and what a machine without one is told.
#include "kernels/core/graph.h"
#include "kernels/ops/fill.h"
#include "tests/kernels/gpu.h"

namespace tilewave {
namespace {

using namespace testing_support;

TEST(ProbeCuda, SaysWhyThereIsNone) {
  const CudaDevices devices = probe_cuda();
  EXPECT_TRUE(!devices.usable.empty() || devices.refused.ends_with(".")) << devices.refused;
  if (devices.usable.empty()) {
    expect_error([] { make_cuda_queue(); }, "--device cpu");
  } else {
    expect_error([] { make_cuda_queue(4096); }, "there is no GPU number 4096");
  }
}

TEST(MathRates, GiveTheDatasheetsPeaks) {
  // TFLOP/s of dense Tensor Core products with fp32 sums: SMs x multiply-adds x 2 x boost clock.
  EXPECT_NEAR(108 * 2.0 * math_rates(80).tensor_bf16 * 1.41e-3, 312.0, 1.0);  // A100
  EXPECT_NEAR(132 * 2.0 * math_rates(90).tensor_bf16 * 1.83e-3, 989.4, 1.0);  // H100 SXM, H200
  EXPECT_NEAR(132 * 2.0 * math_rates(90).tensor_tf32 * 1.83e-3, 494.7, 1.0);
  EXPECT_NEAR(132 * 2.0 * math_rates(90).fp32 * 1.98e-3, 67.0, 1.0);
  EXPECT_EQ(math_rates(12).tensor_bf16, 0);
}

class GpuSeam : public GpuTest {};

TEST_F(GpuSeam, TellsWhatTheDeviceIs) {
  EXPECT_FALSE(device_.name.empty());
  EXPECT_GE(device_.capability, kMinCudaCapability);
  EXPECT_GT(device_.sm_count, 0);
  EXPECT_GT(device_.clock_hz, 1e8);
  EXPECT_GT(device_.bandwidth_bytes_per_s, 1e10);
  EXPECT_GE(device_.shared_bytes, 48 << 10);
}

TEST_F(GpuSeam, CopiesAndFillsInOrder) {
  testing_support::Random random(1);
  Matrix<float> matrix = Matrix<float>::uniform(7, 33, random);
  const std::vector<double> before = matrix.values();
  OnDevice<float> twin(queue_, matrix);
  matrix = Matrix<float>(7, 33);
  twin.fetch();
  EXPECT_EQ(matrix.values(), before);
  EXPECT_TRUE(matrix.guards_intact());
  EXPECT_GT(free_bytes(queue_).value(), 0);
}

TEST_F(GpuSeam, SaysHowMuchMemoryThereIsWhereItIsNotEnough) {
  expect_error([&] { allocate(queue_, std::int64_t{1} << 50); }, "are free; ask for less: a smaller batch.target_tokens");
  void* after = allocate(queue_, 256);
  release(queue_, after);
}

TEST_F(GpuSeam, AGraphRunsItsLaunchesAgain) {
  Matrix<float> matrix(3, 5);
  OnDevice<float> twin(queue_, matrix);
  const Graph graph = capture(queue_, [&] { run(queue_, FillArgs{.y = twin.view(), .value = 2.0}); });
  twin.fetch();
  EXPECT_TRUE(std::isnan(matrix(0, 0))) << "capturing ran the launches";
  graph.replay();
  twin.fetch();
  EXPECT_EQ(matrix(2, 4), 2.0F);
  EXPECT_TRUE(matrix.guards_intact());
  expect_error([&] { capture(queue_, [] { throw Error("within"); }); }, "within");
  graph.replay();
  synchronize(queue_);
}

}  // namespace
}  // namespace tilewave

// Batch normalization, pooling and the columns of convolutions on a GPU against the CPU in double, in both layouts; bits that depend on
// neither pitch, passes nor run.
#include "kernels/ops/im2col.h"
#include "tests/kernels/gpu_operations.h"
#include "tests/kernels/ops/batch_norm_problem.h"
#include "tests/kernels/ops/im2col_problem.h"
#include "tests/kernels/ops/pool_problem.h"

namespace tilewave {
namespace {

using namespace testing_support;

template <class T>
class GpuImages : public GpuOperation<T> {
 protected:
  CpuQueue cpu_ = make_cpu_queue(2);
};
TYPED_TEST_SUITE(GpuImages, DeviceFloats);

// One channel and one pixel; tails of packs; more packs of channels than a block has threads; rows of one lane, of some and of several
// segments; chunks of eight rows, of more, and more of them than CTAs; more than stays on the chip.
constexpr Images kBatchNormImages[] = {
    {.count = 2, .channels = 1, .height = 1, .width = 1},     {.count = 3, .channels = 17, .height = 4, .width = 3},
    {.count = 5, .channels = 64, .height = 7, .width = 7},    {.count = 2, .channels = 4111, .height = 3, .width = 2},
    {.count = 3, .channels = 5, .height = 16, .width = 16},   {.count = 2, .channels = 3, .height = 16, .width = 17},
    {.count = 2, .channels = 2, .height = 64, .width = 129},  {.count = 40, .channels = 24, .height = 9, .width = 11},
    {.count = 64, .channels = 70, .height = 28, .width = 28}, {.count = 1, .channels = 520, .height = 40, .width = 41}};

template <class T>
using GpuBatchNorm = BatchNormMatrices<T, Statistics<T>>;

// y, mean, rstd, running statistics, dx, dgamma, dbeta, of matrices on the device at that pitch.
template <class T>
std::vector<std::vector<double>> batch_norm_on_gpu(Queue& queue, const GpuBatchNorm<T>& given, BatchNormMode mode, BatchNormPasses passes,
                                                   Pitch pitch, bool accumulate) {
  using A = Statistics<T>;
  const Images& images = given.images;
  Twin<T> x(queue, given.x, pitch), dy(queue, given.dy, pitch), gamma(queue, given.gamma), beta(queue, given.beta),
      y(queue, images.rows(), images.cols(), pitch),
      dx = accumulate ? Twin<T>(queue, given.dx, pitch) : Twin<T>(queue, images.rows(), images.cols(), pitch);
  Twin<A> mean(queue, 1, images.channels), rstd(queue, 1, images.channels), running_mean(queue, given.running_mean),
      running_variance(queue, given.running_variance), dgamma(queue, given.dgamma), dbeta(queue, given.dbeta),
      partial(queue, given.partial.rows(), given.partial.cols());
  GpuBatchNorm<T> shapes(images, 1);
  BatchNormArgs forward = shapes.forward(mode, passes);
  forward.x = x.view(), forward.gamma = gamma.view(), forward.beta = beta.view(), forward.y = y.view();
  forward.mean = mean.view(), forward.rstd = rstd.view();
  forward.running_mean = running_mean.view(), forward.running_variance = running_variance.view();
  if (mode == BatchNormMode::training) forward.partial = partial.view();
  run(queue, forward);
  BatchNormBackwardArgs backward = shapes.backward(accumulate, mode, passes);
  backward.x = x.view(), backward.gamma = gamma.view(), backward.mean = mean.view(), backward.rstd = rstd.view();
  backward.dy = dy.view(), backward.dx = dx.view(), backward.dgamma = dgamma.view(), backward.dbeta = dbeta.view();
  backward.partial = partial.view();
  run(queue, backward);
  EXPECT_TRUE(y.fetch().guards_intact() && dx.fetch().guards_intact() && mean.fetch().guards_intact() && rstd.fetch().guards_intact());
  EXPECT_TRUE(dgamma.fetch().guards_intact() && dbeta.fetch().guards_intact() && partial.fetch().guards_intact());
  EXPECT_TRUE(running_mean.fetch().guards_intact() && running_variance.fetch().guards_intact());
  return {
      y.fetch().values(),  mean.fetch().values(),   rstd.fetch().values(), running_mean.fetch().values(), running_variance.fetch().values(),
      dx.fetch().values(), dgamma.fetch().values(), dbeta.fetch().values()};
}

template <class T>
void expect_the_cpus(CpuQueue& cpu, Queue& queue, const Images& images, BatchNormMode mode, bool accumulate) {
  GpuBatchNorm<T> given(images, 3);
  BatchNormMatrices<double> wide(images, 3);
  wide.x = converted<double>(given.x), wide.dy = converted<double>(given.dy), wide.dx = converted<double>(given.dx);
  wide.gamma = converted<double>(given.gamma), wide.beta = converted<double>(given.beta);
  wide.running_mean = converted<double>(given.running_mean), wide.running_variance = converted<double>(given.running_variance);
  wide.dgamma = converted<double>(given.dgamma), wide.dbeta = converted<double>(given.dbeta);
  run(cpu, wide.forward(mode));
  run(cpu, wide.backward(accumulate, mode));
  const auto expected = batch_norm_results(wide);
  const auto one = batch_norm_on_gpu<T>(queue, given, mode, BatchNormPasses::one, Pitch::aligned, accumulate);
  const std::int64_t values = images.count * images.pixels();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(kBatchNormResults[i]);
    const bool rounded = i == 0 || i == 5;  // y and dx are T's, the others statistics
    // dx is a small difference of dy and its means where there are few values.
    const double scale = i == 5 ? norm(wide.dy.values()) * norm(wide.rstd.values()) : norm(expected[i]);
    ASSERT_GT(scale, 0.0);
    ASSERT_EQ(one[i].size(), expected[i].size());
    const double error = relative_error(one[i], expected[i]) * norm(expected[i]) / scale;
    EXPECT_LE(error, rounded ? rounding<T>(values) : tolerance<Statistics<T>>(values));
  }
  EXPECT_EQ(batch_norm_on_gpu<T>(queue, given, mode, BatchNormPasses::one, Pitch::odd, accumulate), one) << "bits depend on the pitch";
  EXPECT_EQ(batch_norm_on_gpu<T>(queue, given, mode, BatchNormPasses::several, Pitch::aligned, accumulate), one)
      << "bits depend on the passes";
  EXPECT_EQ(batch_norm_on_gpu<T>(queue, given, mode, BatchNormPasses::one, Pitch::aligned, accumulate), one)
      << "bits differ from run to run";
}

TYPED_TEST(GpuImages, BatchNormIsTheCpusInEveryPass) {
  for (const Images& shape : kBatchNormImages) {
    for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw}) {
      const Images images = with_layout(shape, layout);
      SCOPED_TRACE(concat(images.count, " x ", images.channels, " x ", images.pixels(), ' ', name_of(layout)));
      expect_the_cpus<TypeParam>(this->cpu_, this->queue_, images, BatchNormMode::training, false);
      if (images.rows() * images.cols() > 100000) continue;
      expect_the_cpus<TypeParam>(this->cpu_, this->queue_, images, BatchNormMode::training, true);
      expect_the_cpus<TypeParam>(this->cpu_, this->queue_, images, BatchNormMode::evaluation, true);
    }
  }
}

// What no SM has room for is read again, to the same bits: some 50 MiB of 16-bit numbers for each matrix.
class GpuLargeImages : public GpuTest {};

TEST_F(GpuLargeImages, BatchNormOfMoreThanTheChipHoldsIsThatOfSeveralPasses) {
  for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw}) {
    const Images images{.count = 64, .channels = 136, .height = 56, .width = 56, .layout = layout};
    SCOPED_TRACE(name_of(layout));
    const GpuBatchNorm<bf16> given(images, 9);
    const auto one = batch_norm_on_gpu<bf16>(queue_, given, BatchNormMode::training, BatchNormPasses::one, Pitch::aligned, false);
    const auto several = batch_norm_on_gpu<bf16>(queue_, given, BatchNormMode::training, BatchNormPasses::several, Pitch::aligned, false);
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_GT(norm(one[i]), 0.0) << kBatchNormResults[i];
      EXPECT_EQ(one[i] == several[i], true) << kBatchNormResults[i];
    }
  }
}

TYPED_TEST(GpuImages, PoolingIsTheCpus) {
  using T = TypeParam;
  Random random(11);
  std::vector<PoolCase> cases = pool_cases();
  for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw}) {
    cases.push_back({{.count = 3, .channels = 72, .height = 29, .width = 31, .layout = layout},
                     {.height = 3, .width = 3, .stride_down = 2, .stride_across = 2, .padding_down = 1, .padding_across = 1}});
  }
  for (const PoolCase& c : cases) {
    const Images result = pooled(c.images, c.window);
    const auto x = Matrix<T>::uniform(c.images.rows(), c.images.cols(), random, 0.1, 2.0),
               dy = Matrix<T>::uniform(result.rows(), result.cols(), random),
               earlier = Matrix<T>::uniform(c.images.rows(), c.images.cols(), random);
    const Matrix<double> wide_x = converted<double>(x), wide_dy = converted<double>(dy);
    Matrix<double> largest(result.rows(), result.cols()),
        average = largest, other_average = largest, from_largest(c.images.rows(), c.images.cols()), added = converted<double>(earlier),
        from_average = from_largest, added_average = added;
    Matrix<std::int32_t> indices(result.rows(), result.cols());
    run(this->cpu_,
        MaxPoolArgs{.x = wide_x.view(), .y = largest.view(), .indices = indices.view(), .images = c.images, .window = c.window});
    const auto back = [&](const ConstMatrixView& of, const ConstMatrixView& at, const MatrixView& to, bool accumulate) {
      return MaxPoolBackwardArgs{.dy = of, .indices = at, .dx = to, .accumulate = accumulate, .images = c.images, .window = c.window};
    };
    const auto averaged = [&](const ConstMatrixView& of, const MatrixView& to, PadCount count) {
      return AveragePoolArgs{.x = of, .y = to, .images = c.images, .window = c.window, .count_pad = count};
    };
    const auto spread = [&](const ConstMatrixView& of, const MatrixView& to, bool accumulate) {
      return AveragePoolBackwardArgs{.dy = of,
                                     .dx = to,
                                     .accumulate = accumulate,
                                     .images = c.images,
                                     .window = c.window,
                                     .count_pad = accumulate ? PadCount::excluded : PadCount::included};
    };
    run(this->cpu_, back(wide_dy.view(), indices.view(), from_largest.view(), false));
    run(this->cpu_, back(wide_dy.view(), indices.view(), added.view(), true));
    run(this->cpu_, averaged(wide_x.view(), average.view(), PadCount::included));
    run(this->cpu_, averaged(wide_x.view(), other_average.view(), PadCount::excluded));
    run(this->cpu_, spread(wide_dy.view(), from_average.view(), false));
    run(this->cpu_, spread(wide_dy.view(), added_average.view(), true));
    for (const Pitch pitch : kPitches) {
      SCOPED_TRACE(concat(text_of(c), pitch == Pitch::odd ? ", odd pitch" : ", aligned pitch"));
      Queue& queue = this->queue_;
      Twin<T> device_x(queue, x, pitch), device_dy(queue, dy, pitch), y(queue, result.rows(), result.cols(), pitch),
          without(queue, result.rows(), result.cols(), pitch), a(queue, result.rows(), result.cols(), pitch),
          b(queue, result.rows(), result.cols(), pitch), dx(queue, c.images.rows(), c.images.cols(), pitch),
          dx_added(queue, earlier, pitch), da(queue, c.images.rows(), c.images.cols(), pitch), da_added(queue, earlier, pitch);
      Twin<std::int32_t> device_indices(queue, result.rows(), result.cols());
      run(queue,
          MaxPoolArgs{.x = device_x.view(), .y = y.view(), .indices = device_indices.view(), .images = c.images, .window = c.window});
      run(queue, MaxPoolArgs{.x = device_x.view(), .y = without.view(), .images = c.images, .window = c.window});
      run(queue, back(device_dy.view(), device_indices.view(), dx.view(), false));
      run(queue, back(device_dy.view(), device_indices.view(), dx_added.view(), true));
      run(queue, averaged(device_x.view(), a.view(), PadCount::included));
      run(queue, averaged(device_x.view(), b.view(), PadCount::excluded));
      run(queue, spread(device_dy.view(), da.view(), false));
      run(queue, spread(device_dy.view(), da_added.view(), true));
      EXPECT_EQ(device_indices.fetch().values(), indices.values());
      EXPECT_EQ(y.fetch().values(), largest.values()) << "the largest is one of x's numbers";
      EXPECT_EQ(without.fetch().values(), largest.values());
      EXPECT_TRUE(y.fetch().guards_intact() && device_indices.fetch().guards_intact() && without.fetch().guards_intact());
      const std::int64_t places = c.window.height * c.window.width;
      expect_rounded(dx.fetch(), from_largest.values(), places);
      expect_rounded(dx_added.fetch(), added.values(), places + 1);
      expect_rounded(a.fetch(), average.values(), places);
      expect_rounded(b.fetch(), other_average.values(), places);
      expect_rounded(da.fetch(), from_average.values(), places);
      expect_rounded(da_added.fetch(), added_average.values(), places + 1);
    }
  }
}

// Copies to the bit, and sums of an order that neither pitch nor run changes.
TYPED_TEST(GpuImages, ColumnsOfConvolutionsAreTheCpus) {
  using T = TypeParam;
  Random random(12);
  std::vector<ConvolutionCase> cases = convolution_cases();
  cases.push_back({{.count = 3, .channels = 72, .height = 29, .width = 31},
                   {.stride_down = 2, .stride_across = 2, .padding_down = 1, .padding_across = 1}});
  for (const ConvolutionCase& c : cases) {
    const std::int64_t outputs = convolved(c.images, c.filter, 1).rows(), width = c.filter.taps() * c.images.channels;
    const auto x = Matrix<T>::uniform(c.images.rows(), c.images.channels, random), dcolumns = Matrix<T>::uniform(outputs, width, random),
               earlier = Matrix<T>::uniform(c.images.rows(), c.images.channels, random);
    const Matrix<double> wide_x = converted<double>(x), wide_dcolumns = converted<double>(dcolumns);
    Matrix<double> columns(outputs, width), dx(c.images.rows(), c.images.channels), added = converted<double>(earlier);
    const auto forward = [&](const ConstMatrixView& from, const MatrixView& to) {
      return Im2colArgs{.x = from, .columns = to, .images = c.images, .filter = c.filter};
    };
    const auto back = [&](const ConstMatrixView& from, const MatrixView& to, bool accumulate) {
      return Col2imArgs{.dcolumns = from, .dx = to, .accumulate = accumulate, .images = c.images, .filter = c.filter};
    };
    run(this->cpu_, forward(wide_x.view(), columns.view()));
    run(this->cpu_, back(wide_dcolumns.view(), dx.view(), false));
    run(this->cpu_, back(wide_dcolumns.view(), added.view(), true));
    std::vector<double> first;
    for (const Pitch pitch : kPitches) {
      SCOPED_TRACE(concat(text_of(c), pitch == Pitch::odd ? ", odd pitch" : ", aligned pitch"));
      Queue& queue = this->queue_;
      Twin<T> device_x(queue, x, pitch), device_columns(queue, outputs, width, pitch), device_dcolumns(queue, dcolumns, pitch),
          device_dx(queue, c.images.rows(), c.images.channels, pitch), device_added(queue, earlier, pitch);
      run(queue, forward(device_x.view(), device_columns.view()));
      run(queue, back(device_dcolumns.view(), device_dx.view(), false));
      run(queue, back(device_dcolumns.view(), device_added.view(), true));
      EXPECT_EQ(device_columns.fetch().values(), columns.values());
      EXPECT_TRUE(device_columns.fetch().guards_intact());
      expect_rounded(device_dx.fetch(), dx.values(), c.filter.taps());
      expect_rounded(device_added.fetch(), added.values(), c.filter.taps() + 1);
      if (first.empty()) first = device_dx.fetch().values();
      EXPECT_EQ(device_dx.fetch().values(), first) << "bits depend on the pitch";
    }
  }
}

TYPED_TEST(GpuImages, ANanIsTheLargestOfItsWindowAndOfEqualOnesTheFirst) {
  using T = TypeParam;
  for (const ImageLayout layout : {ImageLayout::nhwc, ImageLayout::nchw}) {
    const Images images{.count = 1, .channels = 3, .height = 1, .width = 4, .layout = layout};
    const PoolWindow window{.height = 1, .width = 4, .stride_down = 1, .stride_across = 4};
    const double values[3][4] = {{-1.0, std::nan(""), 2.0, 1.0}, {3.0, 5.0, 5.0, 5.0}, {-2.0, -2.0, -3.0, -2.0}};
    Matrix<T> x(images.rows(), images.cols());
    each_image_value(images, [&](const ImageAt& at) { value_at(x, images, at) = from_double<T>(values[at.channel][at.pixel]); });
    const Images result = pooled(images, window);
    Twin<T> device_x(this->queue_, x), y(this->queue_, result.rows(), result.cols());
    Twin<std::int32_t> indices(this->queue_, result.rows(), result.cols());
    run(this->queue_, MaxPoolArgs{.x = device_x.view(), .y = y.view(), .indices = indices.view(), .images = images, .window = window});
    const auto numbers = y.fetch().values();
    EXPECT_TRUE(std::isnan(numbers[0]));
    EXPECT_EQ(numbers[1], 5.0);
    EXPECT_EQ(numbers[2], -2.0);
    EXPECT_EQ(indices.fetch().values(), (std::vector<double>{1.0, 1.0, 0.0}));
  }
}

}  // namespace
}  // namespace tilewave

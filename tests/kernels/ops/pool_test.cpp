// Pooling in both layouts against its definition, pixel by pixel: ties, NaNs and padding as torch has them, gradients against central
// differences.
#include "kernels/ops/pool.h"

#include "tests/kernels/ops/pool_problem.h"

namespace tilewave {
namespace {

using namespace testing_support;

// The pixels of an output pixel's window, row by row.
std::vector<std::int64_t> window_pixels(const PoolCase& c, std::int64_t output) {
  const Images result = pooled(c.images, c.window);
  const std::int64_t top = output / result.width * c.window.stride_down - c.window.padding_down,
                     left = output % result.width * c.window.stride_across - c.window.padding_across;
  std::vector<std::int64_t> pixels;
  for (std::int64_t i = top; i < top + c.window.height; ++i) {
    for (std::int64_t j = left; j < left + c.window.width; ++j) {
      if (i >= 0 && i < c.images.height && j >= 0 && j < c.images.width) pixels.push_back(i * c.images.width + j);
    }
  }
  return pixels;
}

template <class T>
class PoolKernel : public ::testing::Test {};
TYPED_TEST_SUITE(PoolKernel, Floats);

TYPED_TEST(PoolKernel, TheLargestAndItsIndexAreThoseOfTheWindow) {
  using T = TypeParam;
  Random random(1);
  for (const PoolCase& c : pool_cases()) {
    SCOPED_TRACE(text_of(c));
    const Images result = pooled(c.images, c.window);
    Matrix<T> x(c.images.rows(), c.images.cols());
    each_image_value(c.images, [&](const ImageAt& at) { value_at(x, c.images, at) = static_cast<T>(static_cast<int>(random() % 7) - 6); });
    for (const int threads : {1, 3}) {
      CpuQueue queue = make_cpu_queue(threads);
      Matrix<T> y(result.rows(), result.cols()), alone = y;
      Matrix<std::int32_t> indices(result.rows(), result.cols());
      run(queue, MaxPoolArgs{.x = x.view(), .y = y.view(), .indices = indices.view(), .images = c.images, .window = c.window});
      run(queue, MaxPoolArgs{.x = x.view(), .y = alone.view(), .images = c.images, .window = c.window});
      EXPECT_TRUE(same_bits(alone, y));
      each_image_value(result, [&](const ImageAt& at) {
        std::int64_t first = -1;
        for (const std::int64_t pixel : window_pixels(c, at.pixel)) {
          const auto value = [&](std::int64_t p) { return value_at(x, c.images, {at.image, at.channel, p}); };
          if (first < 0 || value(pixel) > value(first)) first = pixel;
        }
        ASSERT_GE(first, 0);
        EXPECT_EQ(value_at(indices, result, at), first) << "of equal ones the first";
        EXPECT_EQ(value_at(y, result, at), value_at(x, c.images, {at.image, at.channel, first}));
      });
      EXPECT_TRUE(y.guards_intact() && indices.guards_intact());
    }
  }
}

TYPED_TEST(PoolKernel, AveragesCountTheirPadOrNot) {
  using T = TypeParam;
  Random random(2);
  CpuQueue queue = make_cpu_queue(2);
  for (const PoolCase& c : pool_cases()) {
    SCOPED_TRACE(text_of(c));
    const Images result = pooled(c.images, c.window);
    const auto x = Matrix<T>::uniform(c.images.rows(), c.images.cols(), random, 0.5, 1.5);
    for (const PadCount count : {PadCount::included, PadCount::excluded}) {
      Matrix<T> y(result.rows(), result.cols());
      run(queue, AveragePoolArgs{.x = x.view(), .y = y.view(), .images = c.images, .window = c.window, .count_pad = count});
      each_image_value(result, [&](const ImageAt& at) {
        const std::vector<std::int64_t> pixels = window_pixels(c, at.pixel);
        double sum = 0.0;
        for (const std::int64_t pixel : pixels) sum += value_at(x, c.images, {at.image, at.channel, pixel});
        const double all =
            count == PadCount::included ? static_cast<double>(c.window.height * c.window.width) : static_cast<double>(pixels.size());
        EXPECT_NEAR(value_at(y, result, at), sum / all, 16.0 * epsilon<T>());
      });
      EXPECT_TRUE(y.guards_intact());
    }
  }
}

// Distinct numbers, so that a step of a central difference changes no largest one.
TEST(Pool, GradientsAreCentralDifferencesAlsoWhereTheyAreAdded) {
  Random random(3);
  CpuQueue queue = make_cpu_queue(1);
  for (const PoolCase& c : pool_cases()) {
    if (c.images.rows() * c.images.cols() > 400 || c.images.pixels() == 1) continue;
    SCOPED_TRACE(text_of(c));
    const Images result = pooled(c.images, c.window);
    Matrix<double> x(c.images.rows(), c.images.cols());
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < c.images.rows() * c.images.cols(); ++i) numbers.push_back(0.01 * static_cast<double>(i));
    std::shuffle(numbers.begin(), numbers.end(), random);
    std::size_t next = 0;
    each_image_value(c.images, [&](const ImageAt& at) { value_at(x, c.images, at) = numbers[next++]; });
    const auto dy = Matrix<double>::uniform(result.rows(), result.cols(), random);
    const auto loss_of = [&](const auto& forward) {
      return [&, forward] {
        Matrix<double> y(result.rows(), result.cols());
        forward(y);
        double sum = 0.0;
        each_image_value(result, [&](const ImageAt& at) { sum += value_at(y, result, at) * value_at(dy, result, at); });
        return sum;
      };
    };
    const auto expect_added = [&](const Matrix<double>& dx, const auto& backward) {
      Matrix<double> added = Matrix<double>::filled(dx.rows(), dx.cols(), 0.5);
      backward(added);
      for (std::int64_t r = 0; r < dx.rows(); ++r) {
        for (std::int64_t col = 0; col < dx.cols(); ++col) EXPECT_NEAR(added(r, col), dx(r, col) + 0.5, 1e-12);
      }
    };
    Matrix<double> y(result.rows(), result.cols()), dx(c.images.rows(), c.images.cols());
    Matrix<std::int32_t> indices(result.rows(), result.cols());
    run(queue, MaxPoolArgs{.x = x.view(), .y = y.view(), .indices = indices.view(), .images = c.images, .window = c.window});
    MaxPoolBackwardArgs largest{.dy = dy.view(), .indices = indices.view(), .dx = dx.view(), .images = c.images, .window = c.window};
    run(queue, largest);
    expect_central_differences(x, dx, loss_of([&](Matrix<double>& to) {
                                 run(queue, MaxPoolArgs{.x = x.view(), .y = to.view(), .images = c.images, .window = c.window});
                               }));
    expect_added(dx, [&](Matrix<double>& added) {
      largest.dx = added.view();
      largest.accumulate = true;
      run(queue, largest);
    });
    for (const PadCount count : {PadCount::included, PadCount::excluded}) {
      AveragePoolBackwardArgs average{.dy = dy.view(), .dx = dx.view(), .images = c.images, .window = c.window, .count_pad = count};
      run(queue, average);
      expect_central_differences(
          x, dx, loss_of([&](Matrix<double>& to) {
            run(queue, AveragePoolArgs{.x = x.view(), .y = to.view(), .images = c.images, .window = c.window, .count_pad = count});
          }));
      expect_added(dx, [&](Matrix<double>& added) {
        average.dx = added.view();
        average.accumulate = true;
        run(queue, average);
      });
    }
  }
}

TEST(Pool, ANanIsTheLargestAndPaddingIsNot) {
  const Images images{.count = 1, .channels = 1, .height = 1, .width = 4, .layout = ImageLayout::nchw};
  const PoolWindow window{.height = 1, .width = 2, .stride_down = 1, .stride_across = 2, .padding_across = 1};
  CpuQueue queue = make_cpu_queue(1);
  const float nan = std::nanf(""), least = -std::numeric_limits<float>::infinity();
  for (const std::vector<float>& row : {std::vector<float>{-5.0F, nan, 3.0F, least}, {-5.0F, 3.0F, nan, least}}) {
    const auto x = Matrix<float>::row_of(row);
    Matrix<float> y(1, 3);
    Matrix<std::int32_t> indices(1, 3);
    run(queue, MaxPoolArgs{.x = x.view(), .y = y.view(), .indices = indices.view(), .images = images, .window = window});
    EXPECT_EQ(y(0, 0), -5.0F) << "padding is below every number";
    EXPECT_TRUE(std::isnan(y(0, 1)));
    EXPECT_EQ(y(0, 2), least);
    EXPECT_EQ(indices(0, 0), 0);
    EXPECT_EQ(indices(0, 1), std::isnan(row[1]) ? 1 : 2);
    EXPECT_EQ(indices(0, 2), 3);
  }
}

TEST(PoolContract, NamesWhatDoesNotFit) {
  CpuQueue queue = make_cpu_queue(1);
  const Images images{.count = 1, .channels = 2, .height = 3, .width = 3};
  Matrix<float> x(9, 2), y(1, 2);
  const auto refusal = [&](const Images& of, const PoolWindow& window, const std::string& sentence) {
    expect_error([&] { run(queue, MaxPoolArgs{.x = x.view(), .y = y.view(), .images = of, .window = window}); }, sentence);
    expect_error([&] { run(queue, AveragePoolArgs{.x = x.view(), .y = y.view(), .images = of, .window = window}); },
                 sentence.substr(sentence.find(':')));
  };
  refusal(images, {.height = 4, .width = 2}, "max_pool: a window of 4 x 2 does not fit in an image of 3 x 3 with padding 0 and 0.");
  refusal(images, {.padding_down = 2}, "max_pool: the padding is 2 and 0, the window 2 x 2; padding is from 0 to half the window.");
  refusal(images, {.stride_down = 0}, "max_pool: the window is 2 x 2 with strides 0 and 2; each must be at least 1.");
  refusal({.count = 1, .channels = 0, .height = 3, .width = 3}, {},
          "max_pool: images are 1 of 0 channels, 3 x 3; each must be at least 1.");
  refusal({.count = 1, .channels = 2, .height = 4, .width = 3}, {}, "max_pool: x is f32 [9, 2]; it must be f32 [12, 2].");
  Matrix<float> indices(1, 2);
  expect_error([&] { run(queue, MaxPoolArgs{.x = x.view(), .y = y.view(), .indices = indices.view(), .images = images, .window = {}}); },
               "max_pool: indices is f32 [1, 2]; it must be i32 [1, 2].");
  expect_error([&] { run(queue, MaxPoolBackwardArgs{.dy = y.view(), .indices = {}, .dx = x.view(), .images = images, .window = {}}); },
               "max_pool_backward: indices is absent");
}

}  // namespace
}  // namespace tilewave

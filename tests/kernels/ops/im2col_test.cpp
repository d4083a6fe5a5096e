// The matrix of columns element by element, and its transpose: <columns, im2col(x)> = <col2im(columns), x>, also where it is added.
#include "kernels/ops/im2col.h"

#include "tests/kernels/ops/im2col_problem.h"

namespace tilewave {
namespace {

using namespace testing_support;

template <class T>
class Im2col : public ::testing::Test {};
TYPED_TEST_SUITE(Im2col, Floats);

// Rows with and without gaps between pixels, which are copied otherwise.
constexpr std::int64_t kGaps[] = {0, 3};

template <class T>
Matrix<T> uniform_with_gap(std::int64_t rows, std::int64_t cols, std::int64_t gap, Random& random) {
  const auto from = Matrix<T>::uniform(rows, cols, random);
  Matrix<T> matrix(rows, cols, gap);
  for (std::int64_t r = 0; r < rows; ++r) std::copy_n(&from(r, 0), cols, &matrix(r, 0));
  return matrix;
}

TYPED_TEST(Im2col, HasThePixelsThatEachOutputMeets) {
  using T = TypeParam;
  Random random(1);
  for (const ConvolutionCase& c : convolution_cases()) {
    const Images outputs = convolved(c.images, c.filter, 1);
    const std::int64_t channels = c.images.channels, taps = c.filter.taps();
    for (const std::int64_t gap : kGaps) {
      SCOPED_TRACE(concat(text_of(c), ", gap ", gap));
      const auto x = uniform_with_gap<T>(c.images.rows(), channels, gap, random);
      for (const int threads : {1, 3}) {
        CpuQueue queue = make_cpu_queue(threads);
        Matrix<T> columns(outputs.rows(), taps * channels);
        run(queue, Im2colArgs{.x = x.view(), .columns = columns.view(), .images = c.images, .filter = c.filter});
        for (std::int64_t row = 0; row < columns.rows(); ++row) {
          for (std::int64_t column = 0; column < columns.cols(); ++column) {
            const auto pixel = pixel_of(c.images, c.filter, row, column / channels);
            ASSERT_EQ(columns(row, column), pixel ? x(*pixel, column % channels) : T(0)) << row << ", " << column;
          }
        }
        EXPECT_TRUE(columns.guards_intact());
      }
    }
  }
}

TYPED_TEST(Im2col, GathersWhatEachPixelGetsInTheFiltersOrder) {
  using T = TypeParam;
  Random random(2);
  for (const ConvolutionCase& c : convolution_cases()) {
    SCOPED_TRACE(text_of(c));
    const Images outputs = convolved(c.images, c.filter, 1);
    const std::int64_t channels = c.images.channels, taps = c.filter.taps();
    const auto dcolumns = Matrix<T>::uniform(outputs.rows(), taps * channels, random);
    const auto earlier = Matrix<T>::uniform(c.images.rows(), channels, random);
    Matrix<T> expected = Matrix<T>::filled(c.images.rows(), channels, T(0)), sum = earlier;
    for (std::int64_t tap = 0; tap < taps; ++tap) {  // of one element of the filter a pixel meets one output at most
      for (std::int64_t row = 0; row < outputs.rows(); ++row) {
        const auto pixel = pixel_of(c.images, c.filter, row, tap);
        for (std::int64_t at = 0; pixel && at < channels; ++at) {
          expected(*pixel, at) += dcolumns(row, tap * channels + at);
          sum(*pixel, at) += dcolumns(row, tap * channels + at);
        }
      }
    }
    for (const int threads : {1, 3}) {
      CpuQueue queue = make_cpu_queue(threads);
      Matrix<T> dx(c.images.rows(), channels), added = earlier;
      Col2imArgs args{.dcolumns = dcolumns.view(), .dx = dx.view(), .images = c.images, .filter = c.filter};
      run(queue, args);
      args.dx = added.view(), args.accumulate = true;
      run(queue, args);
      EXPECT_TRUE(same_bits(dx, expected));
      EXPECT_TRUE(same_bits(added, sum));
    }
  }
}

TEST(Im2colContract, NamesWhatDoesNotFit) {
  CpuQueue queue = make_cpu_queue(1);
  const Images images{.count = 1, .channels = 2, .height = 3, .width = 3};
  Matrix<float> x(9, 2), columns(1, 18);
  Im2colArgs args{.x = x.view(), .columns = columns.view(), .images = images};
  Col2imArgs back{.dcolumns = columns.view(), .dx = x.view(), .images = images};
  args.filter.height = back.filter.height = 4;
  expect_error([&] { run(queue, args); }, "im2col: a filter of 4 x 3 does not fit in an image of 3 x 3 with padding 0 and 0");
  expect_error([&] { run(queue, back); }, "col2im: a filter of 4 x 3 does not fit in an image of 3 x 3 with padding 0 and 0");
  args.filter.height = back.filter.height = 2;
  expect_error([&] { run(queue, args); }, "im2col: columns is f32 [1, 18]; it must be f32 [2, 12].");
  expect_error([&] { run(queue, back); }, "col2im: dcolumns is f32 [1, 18]; it must be f32 [2, 12].");
  args.filter = back.filter = {};
  args.images.channels = back.images.channels = 3;
  expect_error([&] { run(queue, args); }, "im2col: x is f32 [9, 2]; it must be f32 [9, 3].");
  Matrix<double> wide(9, 2);
  back = {.dcolumns = columns.view(), .dx = wide.view(), .images = images};
  expect_error([&] { run(queue, back); }, "col2im: dx is f64 [9, 2]; it must be f32 [9, 2].");
}

TEST(Im2colCost, CountsEachMatrixOnce) {
  Matrix<float> x(9, 2), columns(4, 8);
  const Images images{.count = 1, .channels = 2, .height = 3, .width = 3};
  const ConvolutionFilter filter{.height = 2, .width = 2};
  EXPECT_EQ(cost(Im2colArgs{.x = x.view(), .columns = columns.view(), .images = images, .filter = filter}),
            (Cost{.flops = 0, .bytes = 4 * (18 + 32)}));
  Col2imArgs back{.dcolumns = columns.view(), .dx = x.view(), .images = images, .filter = filter};
  EXPECT_EQ(cost(back), (Cost{.flops = 32, .bytes = 4 * (18 + 32)}));
  back.accumulate = true;
  EXPECT_EQ(cost(back), (Cost{.flops = 32, .bytes = 4 * (2 * 18 + 32)}));
}

}  // namespace
}  // namespace tilewave

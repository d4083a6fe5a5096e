// Every shade becomes its number of the table in its channel, rounded once; rows that belong to no picture are zero.
#include "kernels/ops/normalize_pixels.h"

#include "tests/kernels/ops/shades.h"

namespace tilewave {
namespace {

using namespace testing_support;

template <class T>
class NormalizePixels : public ::testing::Test {};
using AllFloats = ::testing::Types<float, double, bf16, f16>;
TYPED_TEST_SUITE(NormalizePixels, AllFloats);

TYPED_TEST(NormalizePixels, TakesEachShadeFromTheTable) {
  using T = TypeParam;
  for (const std::int64_t channels : {1, 3, 5}) {
    for (const std::int64_t rows : {1, 255, 256, 20'001}) {
      for (const std::int64_t padding : {0, 1, 37}) {
        SCOPED_TRACE(concat(rows, " rows of ", channels, " channels, and ", padding, " of padding"));
        const std::vector<std::uint8_t> shades = every_shade(rows, channels);
        const Matrix<std::int32_t> words = words_of(shades, (rows + padding) * channels);
        const Matrix<float> table = table_of(channels);
        Matrix<T> expected(rows + padding, channels);
        for (std::int64_t r = 0; r < rows + padding; ++r) {
          for (std::int64_t c = 0; c < channels; ++c) {
            expected(r, c) = r < rows ? from_double<T>(table(c, shades[static_cast<std::size_t>(r * channels + c)])) : from_double<T>(0.0);
          }
        }
        for (const int threads : {1, 3}) {
          CpuQueue queue = make_cpu_queue(threads);
          Matrix<T> y(rows + padding, channels);
          run(queue, NormalizePixelsArgs{.shades = words.view(), .table = table.view(), .y = y.view(), .real_rows = rows});
          EXPECT_TRUE(same_bits(y, expected));
        }
      }
    }
  }
}

TEST(NormalizePixelsContract, NamesWhatDoesNotFit) {
  CpuQueue queue = make_cpu_queue(1);
  Matrix<std::int32_t> words(1, 5), ids(6, 3);
  Matrix<float> table(3, kShades), y(6, 3);
  const NormalizePixelsArgs args{.shades = words.view(), .table = table.view(), .y = y.view(), .real_rows = 6};
  const auto refused = [&](auto&& change, const std::string& sentence) {
    NormalizePixelsArgs changed = args;
    change(changed);
    expect_error([&] { run(queue, changed); }, sentence);
  };
  refused([](auto& a) { a.shades.cols = 4; }, "normalize_pixels: shades is i32 [1, 4]; it must be i32 [1, 5].");
  refused([](auto& a) { a.table.rows = 1; }, "normalize_pixels: table is f32 [1, 256]; it must be f32 [3, 256].");
  refused([](auto& a) { a.y = {}; }, "normalize_pixels: shades is i32 [1, 5]; it must be i32 [1, 0].");
  refused([&](auto& a) { a.y = ids.view(); }, "normalize_pixels: y is i32; it must be of a floating-point type.");
  refused([](auto& a) { a.real_rows = 7; }, "normalize_pixels: 7 rows of y are real; y has 6, so say a number from 0 to that.");
  refused([](auto& a) { a.real_rows = -1; }, "normalize_pixels: -1 rows of y are real");
}

TEST(NormalizePixelsCost, CountsAByteForEachShadeThatIsThere) {
  Matrix<std::int32_t> words(1, 5);
  Matrix<float> table(3, kShades);
  Matrix<bf16> y(6, 3);
  EXPECT_EQ(cost(NormalizePixelsArgs{.shades = words.view(), .table = table.view(), .y = y.view(), .real_rows = 4}),
            (Cost{.flops = 0, .bytes = 4 * 3 + 3 * 256 * 4 + 6 * 3 * 2}));
}

}  // namespace
}  // namespace tilewave

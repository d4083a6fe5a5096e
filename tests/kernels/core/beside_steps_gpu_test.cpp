// Random operands, error norms and ranking on a GPU are a CPU's.
#include "kernels/core/beside_steps.h"
#include "tests/kernels/gpu_operations.h"

namespace tilewave {
namespace {

using namespace testing_support;

template <class T>
class GpuBesideSteps : public GpuOperation<T> {
 protected:
  Queue cpu_ = make_cpu_queue(2);
};
TYPED_TEST_SUITE(GpuBesideSteps, DeviceFloats);

TYPED_TEST(GpuBesideSteps, NormalNumbersAreTheCpusToTheLastBit) {
  using T = TypeParam;
  for (const Pitch pitch : kPitches) {
    Matrix<T> expected(211, 307);
    Twin<T> actual(this->queue_, 211, 307, pitch);
    fill_normal(this->cpu_, expected.view(), 5);
    fill_normal(this->queue_, actual.view(), 5);
    ASSERT_GT(norm(expected.values()), 0.0);
    EXPECT_EQ(actual.fetch().values(), expected.values());
    EXPECT_TRUE(actual.fetch().guards_intact());
  }
}

TYPED_TEST(GpuBesideSteps, ErrorNormsAreTheCpus) {
  using T = TypeParam;
  testing_support::Random random(3);
  const auto a = Matrix<T>::uniform(133, 641, random);
  const auto b = Matrix<float>::uniform(133, 641, random);
  Twin<T> device_a(this->queue_, a);
  Twin<float> device_b(this->queue_, b, Pitch::aligned);
  const ErrorNorms expected = error_norms(this->cpu_, a.view(), b.view()),
                   actual = error_norms(this->queue_, device_a.view(), device_b.view());
  ASSERT_GT(expected.difference, 0.0);
  EXPECT_NEAR(actual.difference, expected.difference, 1e-10 * expected.difference);
  EXPECT_NEAR(actual.reference, expected.reference, 1e-10 * expected.reference);
  EXPECT_EQ(error_norms(this->queue_, device_a.view(), device_a.view()).difference, 0.0);
}

TYPED_TEST(GpuBesideSteps, TheLargestAreTheCpus) {
  using T = TypeParam;
  testing_support::Random random(4);
  constexpr std::int64_t kCols = 50257;
  Matrix<T> row(1, kCols);
  for (std::int64_t c = 0; c < kCols; ++c)
    row(0, c) = from_double<T>(0.125 * static_cast<double>(static_cast<int>(random() % 2001) - 1000));
  std::vector<std::int32_t> named;
  for (std::int32_t c = 0; c < kCols; ++c) {
    if (c % 7 != 3) named.push_back(c);
  }
  const auto columns = Matrix<std::int32_t>::row_of(named);
  Twin<T> device_row(this->queue_, row);
  Twin<std::int32_t> device_columns(this->queue_, columns);
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{40}, columns.cols()}) {
    const auto expected = largest_of(this->cpu_, {.row = row.view(), .columns = columns.view()}, count);
    EXPECT_TRUE(largest_of(this->queue_, {.row = device_row.view(), .columns = device_columns.view()}, count) == expected) << count;
  }
  EXPECT_EQ(device_row.fetch().values(), row.values()) << "the row is read";
  EXPECT_EQ(device_columns.fetch().values(), columns.values());
}

}  // namespace
}  // namespace tilewave

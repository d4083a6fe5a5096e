// Sums and copies, exact in either dtype; also in place.
#include "kernels/ops/add.h"

#include "tests/kernels/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

template <class T>
class Add : public ::testing::Test {};
TYPED_TEST_SUITE(Add, Floats);

TYPED_TEST(Add, AddsEveryElementAndCopiesWhereBIsAbsent) {
  Random random(1);
  for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 17}, {200, 131}}) {
    const auto a = Matrix<TypeParam>::uniform(rows, cols, random), b = Matrix<TypeParam>::uniform(rows, cols, random);
    for (const int threads : {1, 3}) {
      CpuQueue queue = make_cpu_queue(threads);
      Matrix<TypeParam> sum(rows, cols), copy(rows, cols), in_place = b;
      run(queue, AddArgs{.a = a.view(), .b = b.view(), .y = sum.view()});
      run(queue, AddArgs{.a = a.view(), .b = {}, .y = copy.view()});
      run(queue, AddArgs{.a = a.view(), .b = in_place.view(), .y = in_place.view()});
      Matrix<TypeParam> expected(rows, cols);
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < cols; ++c) expected(r, c) = a(r, c) + b(r, c);
      }
      EXPECT_TRUE(same_bits(sum, expected));
      EXPECT_TRUE(same_bits(copy, a));
      EXPECT_TRUE(same_bits(in_place, expected));
    }
  }
}

TEST(AddContract, NamesBothShapesAndRefusesSixteenBits) {
  CpuQueue queue = make_cpu_queue(1);
  Matrix<float> a(2, 3), b(3, 2), y(2, 3);
  expect_error([&] { run(queue, AddArgs{.a = a.view(), .b = b.view(), .y = y.view()}); }, "add: b is f32 [3, 2]; it must be f32 [2, 3].");
  Matrix<bf16> half(2, 3);
  expect_error([&] { run(queue, AddArgs{.a = half.view(), .b = {}, .y = half.view()}); }, "use --set run.precision=fp32");
}

}  // namespace
}  // namespace tilewave

// One value everywhere, and nowhere else.
#include "kernels/ops/fill.h"

#include "tests/kernels/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

template <class T>
class Fill : public ::testing::Test {};
TYPED_TEST_SUITE(Fill, Floats);

TYPED_TEST(Fill, WritesEveryElementAndNoGap) {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 17}, {200, 131}}) {
    for (const int threads : {1, 3}) {
      CpuQueue queue = make_cpu_queue(threads);
      Matrix<TypeParam> y(rows, cols);
      run(queue, FillArgs{.y = y.view(), .value = -1.5});
      EXPECT_TRUE(same_bits(y, Matrix<TypeParam>::filled(rows, cols, TypeParam(-1.5))));
    }
  }
}

}  // namespace
}  // namespace tilewave

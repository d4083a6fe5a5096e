// Heads that stand several times, and the sums of their gradients.
#include "kernels/ops/repeat_heads.h"

#include "tests/kernels/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

template <class T>
class RepeatHeads : public ::testing::Test {};
TYPED_TEST_SUITE(RepeatHeads, Floats);

TYPED_TEST(RepeatHeads, StandBesideEachOtherAndAddUp) {
  using T = TypeParam;
  Random random(1);
  for (const auto& [rows, heads, times, d] : {std::tuple{1, 1, 1, 1}, {5, 2, 3, 7}, {130, 4, 2, 33}}) {
    const auto x = Matrix<T>::uniform(rows, heads * d, random), dy = Matrix<T>::uniform(rows, heads * times * d, random);
    for (const int threads : {1, 3}) {
      CpuQueue queue = make_cpu_queue(threads);
      Matrix<T> y(rows, heads * times * d), dx(rows, heads * d);
      run(queue, RepeatHeadsArgs{.x = x.view(), .y = y.view(), .head_size = d, .times = times});
      run(queue, RepeatHeadsBackwardArgs{.dy = dy.view(), .dx = dx.view(), .head_size = d, .times = times});
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < heads * times * d; ++c) EXPECT_EQ(y(r, c), x(r, c / d / times * d + c % d));
        for (std::int64_t c = 0; c < heads * d; ++c) {
          T sum = 0;
          for (std::int64_t time = 0; time < times; ++time) sum += dy(r, (c / d * times + time) * d + c % d);
          EXPECT_EQ(dx(r, c), sum);
        }
      }
      EXPECT_TRUE(y.guards_intact() && dx.guards_intact());
    }
  }
}

TEST(RepeatHeadsContract, NamesWhatDoesNotFit) {
  CpuQueue queue = make_cpu_queue(1);
  Matrix<float> x(2, 6), y(2, 11);
  expect_error([&] { run(queue, RepeatHeadsArgs{.x = x.view(), .y = y.view(), .head_size = 3, .times = 2}); },
               "repeat_heads: y is f32 [2, 11]; it must be f32 [2, 12].");
  expect_error([&] { run(queue, RepeatHeadsBackwardArgs{.dy = y.view(), .dx = x.view(), .head_size = 4, .times = 2}); },
               "repeat_heads_backward: 6 columns are no whole number of heads of 4, each 2 times.");
}

}  // namespace
}  // namespace tilewave

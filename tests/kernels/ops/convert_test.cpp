// Conversion between any two types, against the host's own rounding, on the CPU and the GPU.
#include "kernels/ops/convert.h"

#include "tests/kernels/gpu.h"

namespace tilewave {
namespace {

using namespace testing_support;

template <class From, class To>
void expect_rounded(const std::function<void(Matrix<From>&, Matrix<To>&)>& convert) {
  Random random(5);
  Matrix<From> x = Matrix<From>::uniform(7, 333, random, -2.0, 2.0);
  Matrix<To> y(7, 333, 5);
  convert(x, y);
  for (std::int64_t r = 0; r < x.rows(); ++r) {
    for (std::int64_t c = 0; c < x.cols(); ++c) ASSERT_EQ(to_double(y(r, c)), to_double(from_double<To>(to_double(x(r, c)))));
  }
  EXPECT_TRUE(y.guards_intact());
}

template <class Fn>
void for_all_pairs(Fn&& fn) {
  const auto each = [](auto&& visit) { visit(double{}), visit(float{}), visit(bf16{}), visit(f16{}); };
  each([&]<class From>(From) { each([&]<class To>(To) { fn.template operator()<From, To>(); }); });
}

TEST(Convert, RoundsToNearest) {
  CpuQueue queue = make_cpu_queue(2);
  for_all_pairs([&]<class From, class To>() {
    expect_rounded<From, To>([&](Matrix<From>& x, Matrix<To>& y) { run(queue, ConvertArgs{.x = x.view(), .y = y.view()}); });
  });
}

TEST(Convert, NamesTheShapes) {
  CpuQueue queue = make_cpu_queue(1);
  Matrix<float> x(2, 3);
  Matrix<bf16> y(3, 2);
  expect_error([&] { run(queue, ConvertArgs{.x = x.view(), .y = y.view()}); }, "convert: y is bf16 [3, 2]; it must be bf16 [2, 3].");
}

class GpuConvert : public GpuTest {};

TEST_F(GpuConvert, RoundsToNearest) {
  for_all_pairs([&]<class From, class To>() {
    expect_rounded<From, To>([&](Matrix<From>& x, Matrix<To>& y) {
      const OnDevice<From> device_x(queue_, x);
      OnDevice<To> device_y(queue_, y);
      run(queue_, ConvertArgs{.x = device_x.view(), .y = device_y.view()});
      device_y.fetch();
    });
  });
}

}  // namespace
}  // namespace tilewave

// Pooling in both layouts: a window that a person can check, and gradients, also where they are added.
#include "framework/ops/pool.h"

#include "framework/ops/add.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

class PoolOperation : public Fp64Test, public testing::WithParamInterface<ImageLayout> {
 protected:
  PoolInputs inputs(const Variable& of, PadCount count = PadCount::included) const {
    return {.x = of, .images = images(), .window = kWindow, .count_pad = count};
  }
  static Images images() { return {.count = 2, .channels = 3, .height = 4, .width = 5, .layout = GetParam()}; }

  static constexpr PoolWindow kWindow{
      .height = 3, .width = 2, .stride_down = 2, .stride_across = 1, .padding_down = 1, .padding_across = 1};
  const Variable x = leaf({images().rows(), images().cols()}, 1);
};

TEST_P(PoolOperation, GradientsOfTheLargest) {
  expect_gradients(context, "max_pool", [&](Context& c) { return max_pool(c, inputs(x)); }, {{"x", x}});
  expect_gradients(context, "max_pool", [&](Context& c) { return max_pool(c, inputs(add(c, x, x))); }, {{"x", x}});
}

TEST_P(PoolOperation, GradientsOfAverages) {
  for (const PadCount count : {PadCount::included, PadCount::excluded}) {
    expect_gradients(context, "average_pool", [&](Context& c) { return average_pool(c, inputs(x, count)); }, {{"x", x}});
  }
}

// An image of one channel, 1 to 9: windows of 2 x 2 at every place.
TEST_P(PoolOperation, OfNineNumbers) {
  const Images nine{.count = 1, .channels = 1, .height = 3, .width = 3, .layout = GetParam()};
  const Shape shape{nine.rows(), nine.cols()};
  const Variable numbers(tensor_of(shape, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const PoolWindow window{.height = 2, .width = 2, .stride_down = 1, .stride_across = 1};
  const NoGradient scope(context);
  EXPECT_EQ(read_elements(context, max_pool(context, {.x = numbers, .images = nine, .window = window}).value()),
            (std::vector<double>{5, 6, 8, 9}));
  EXPECT_EQ(read_elements(context, average_pool(context, {.x = numbers, .images = nine, .window = window}).value()),
            (std::vector<double>{3, 4, 6, 7}));
}

TEST_P(PoolOperation, AddsToAGradientThatIsThere) {
  const PoolWindow same{.height = 3, .width = 3, .stride_down = 1, .stride_across = 1, .padding_down = 1, .padding_across = 1};
  const PoolInputs both{.x = x, .images = images(), .window = same};
  expect_gradients(context, "max_pool", [&](Context& c) { return add(c, max_pool(c, both), x); }, {{"x", x}});
  expect_gradients(context, "average_pool", [&](Context& c) { return add(c, average_pool(c, both), x); }, {{"x", x}});
}

INSTANTIATE_TEST_SUITE_P(Layouts, PoolOperation, testing::Values(ImageLayout::nhwc, ImageLayout::nchw),
                         [](const testing::TestParamInfo<ImageLayout>& layout) { return std::string(name_of(layout.param)); });

class PoolShapes : public Fp64Test {};

TEST_F(PoolShapes, AWindowThatDoesNotFitIsNamed) {
  const Variable x = leaf({4, 3}, 1);
  const Images images{.count = 1, .channels = 3, .height = 2, .width = 2};
  expect_error([&] { max_pool(context, {.x = x, .images = images, .window = {.height = 3}}); }, {"max_pool: a window of 3 x 2", "2 x 2"});
}

}  // namespace
}  // namespace tilewave

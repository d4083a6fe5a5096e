// Convolution against its definition over strides, paddings, dilations and odd sizes, in packed rows and aligned ones; gradients with each
// activation and of inputs used twice; which launches it is; and the sentences of what does not fit.
#include "framework/ops/convolution.h"

#include <algorithm>

#include "framework/ops/add.h"
#include "kernels/core/device_profiles.h"
#include "tests/framework/ops/convolution_problem.h"

namespace tilewave {
namespace {

using namespace testing_support;

class ConvolutionOperation : public testing::TestWithParam<PitchPolicy> {
 protected:
  static Context::Options options(Precision precision) { return {.precision = precision, .pitch = GetParam()}; }
  Context context{make_cpu_queue(2), probe_cpu(2), options(Precision::fp64)};
};

TEST_P(ConvolutionOperation, IsItsDefinition) {
  Context single(make_cpu_queue(2), probe_cpu(2), options(Precision::fp32));
  for (const ConvolutionCase& c : convolution_cases()) {
    expect_the_definitions(context, c, {.term = 4.0 * epsilon<double>()});
    expect_the_definitions(single, c, {.term = 4.0 * epsilon<float>()});
  }
}

// Every stride, padding and dilation of small filters, each another one for height and for width.
TEST_P(ConvolutionOperation, IsItsDefinitionOverASweep) {
  int cases = 0;
  for (const std::int64_t stride : {1, 2, 3}) {
    for (const std::int64_t padding : {0, 1, 2}) {
      for (const std::int64_t dilation : {1, 2}) {
        for (const std::int64_t taps : {1, 2, 3}) {
          const ConvolutionFilter filter{.height = taps,
                                         .width = 4 - taps,
                                         .stride_down = stride,
                                         .stride_across = 4 - stride,
                                         .padding_down = padding,
                                         .padding_across = 2 - padding,
                                         .dilation_down = dilation,
                                         .dilation_across = 3 - dilation};
          const Images images{.count = 2, .channels = 3, .height = 5, .width = 7};
          ASSERT_EQ(refuse_convolution(images, filter), "");
          expect_the_definitions(context, {images, filter}, {.term = 4.0 * epsilon<double>()});
          ++cases;
        }
      }
    }
  }
  EXPECT_EQ(cases, 54);
}

// The comparison can fail: a filter turned, or a stride too many.
TEST_P(ConvolutionOperation, AnotherFilterIsNotIt) {
  const ConvolutionCase c{{.count = 1, .channels = 3, .height = 5, .width = 5}, {.padding_down = 1, .padding_across = 1}};
  ConvolutionNumbers given{.x = std::vector<double>(75),
                           .weight = std::vector<double>(kFilters * 27),
                           .bias = std::vector<double>(kFilters),
                           .dy = std::vector<double>(25 * kFilters, 1.0)};
  for (std::size_t i = 0; i < given.x.size(); ++i) given.x[i] = static_cast<double>(i % 7);
  for (std::size_t i = 0; i < given.weight.size(); ++i) given.weight[i] = static_cast<double>(i % 11);
  const ConvolutionNumbers made = convolution_of(context, c, given);
  convolve(c, given);
  EXPECT_EQ(made.y, given.y);
  EXPECT_EQ(made.dx, given.dx);
  EXPECT_EQ(made.dweight, given.dweight);
  std::ranges::reverse(given.weight);
  convolve(c, given);
  EXPECT_NE(made.y, given.y);
  EXPECT_NE(made.dx, given.dx);
}

TEST_P(ConvolutionOperation, Gradients) {
  for (const ConvolutionCase& c : convolution_cases()) {
    if (c.images.rows() * c.images.channels > 250) continue;
    SCOPED_TRACE(text_of(c));
    const Variable x = random_leaf(context, {c.images.rows(), c.images.channels}, 1),
                   weight = random_leaf(context, {4, c.filter.taps() * c.images.channels}, 2), bias = random_leaf(context, {1, 4}, 3);
    const ConvolutionInputs inputs{.x = x, .weight = weight, .bias = bias, .images = c.images, .filter = c.filter};
    expect_gradients(context, "convolution", [&](Context& of) { return convolution(of, inputs); },
                     {{"x", x}, {"weight", weight}, {"bias", bias}});
  }
}

TEST_P(ConvolutionOperation, GradientsWithEachActivation) {
  const Images images{.count = 2, .channels = 3, .height = 4, .width = 5};
  const Variable x = random_leaf(context, {images.rows(), 3}, 4), weight = random_leaf(context, {4, 27}, 5),
                 bias = random_leaf(context, {1, 4}, 6);
  for (const Activation activation : {Activation::relu, Activation::gelu_tanh, Activation::gelu_erf}) {
    SCOPED_TRACE(name_of(activation));
    const ConvolutionInputs inputs{.x = x,
                                   .weight = weight,
                                   .bias = bias,
                                   .images = images,
                                   .filter = {.stride_down = 2, .padding_across = 1},
                                   .activation = activation};
    expect_gradients(context, "convolution", [&](Context& of) { return convolution(of, inputs); },
                     {{"x", x}, {"weight", weight}, {"bias", bias}});
  }
}

// Two of one weight, one behind the other, whose input is added to what comes out: gradients are added to what is there.
TEST_P(ConvolutionOperation, GradientsOfInputsUsedTwice) {
  const Images images{.count = 2, .channels = 3, .height = 4, .width = 3};
  for (const ConvolutionFilter filter :
       {ConvolutionFilter{.padding_down = 1, .padding_across = 1}, ConvolutionFilter{.height = 1, .width = 1}}) {
    const Variable x = random_leaf(context, {images.rows(), 3}, 7), weight = random_leaf(context, {3, 3 * filter.taps()}, 8);
    const auto twice = [&](Context& of) {
      const auto once = [&](const Variable& input) {
        return convolution(of, {.x = input, .weight = weight, .images = images, .filter = filter});
      };
      return add(of, once(once(x)), x);
    };
    expect_gradients(context, "convolution", twice, {{"x", x}, {"weight", weight}});
  }
}

TEST_P(ConvolutionOperation, LeavesConstantsAlone) {
  const Images images{.count = 1, .channels = 3, .height = 4, .width = 3};
  const Variable x = random_leaf(context, {images.rows(), 3}, 9), weight = random_leaf(context, {3, 27}, 10);
  const auto of = [&](const Variable& input, const Variable& by) {
    return [&, input, by](Context& c) { return convolution(c, {.x = input, .weight = by, .images = images}); };
  };
  expect_gradients(context, "convolution", of(Variable(x.value()), weight), {{"weight", weight}});
  expect_gradients(context, "convolution", of(x, Variable(weight.value())), {{"x", x}});
}

// What forward and backward launch, but for the copy of what backward() starts from.
std::vector<std::string> launches_of(PitchPolicy pitch, const ConvolutionCase& c, Precision precision = Precision::bf16) {
  Trace trace;
  Context context(TraceQueue{&trace}, device_profile("h200").device, {.precision = precision, .pitch = pitch});
  const PrecisionTable& types = context.precision();
  const auto leaf = [&](Shape shape) {
    return Variable::leaf(context.tensor(shape, types.activation), context.tensor(shape, types.activation));
  };
  const Variable x = leaf({c.images.rows(), c.images.channels}), weight = leaf({8, c.filter.taps() * c.images.channels});
  const Variable y = convolution(context, {.x = x, .weight = weight, .images = c.images, .filter = c.filter});
  backward(context, y, context.tensor(y.shape(), types.activation));
  std::vector<std::string> names;
  for (const TraceEntry& entry : trace.entries) {
    if (entry.operation == "add") continue;
    names.push_back(entry.gemm ? concat(entry.operation, ' ', name_of(entry.gemm->role)) : std::string(entry.operation));
  }
  return names;
}

TEST_P(ConvolutionOperation, IsGemmsAloneWhereItsColumnsLieInPlace) {
  const std::vector<std::string> alone = {"gemm forward", "gemm wgrad", "gemm dgrad"},
                                 copied = {"im2col", "gemm forward", "im2col", "gemm wgrad", "gemm dgrad", "col2im"};
  const Images images{.count = 2, .channels = 3, .height = 8, .width = 12};
  const bool packed = GetParam() == PitchPolicy::packed;
  EXPECT_EQ(launches_of(GetParam(), {images, {.height = 1, .width = 1}}), alone);
  EXPECT_EQ(launches_of(GetParam(), {images, {.height = 1, .width = 4, .stride_across = 4}}), packed ? alone : copied);
  EXPECT_EQ(launches_of(GetParam(), {images, {.height = 4, .width = 12, .stride_down = 4}}), packed ? alone : copied);
  EXPECT_EQ(launches_of(GetParam(), {images, {.height = 8, .width = 12}}), packed ? alone : copied) << "an image a row";
  EXPECT_EQ(launches_of(GetParam(), {images, {.height = 4, .width = 4, .stride_down = 4, .stride_across = 4}}), copied);
  EXPECT_EQ(launches_of(GetParam(), {images, {}}), copied);
  EXPECT_EQ(launches_of(GetParam(), {images, {.height = 1, .width = 1, .padding_down = 1}}), copied);
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::fp64}) {
    EXPECT_EQ(launches_of(GetParam(), {images, {}}, precision), copied) << name_of(precision);
  }
}

INSTANTIATE_TEST_SUITE_P(Pitches, ConvolutionOperation, testing::Values(PitchPolicy::packed, PitchPolicy::aligned),
                         [](const testing::TestParamInfo<PitchPolicy>& pitch) {
                           return std::string(pitch.param == PitchPolicy::packed ? "packed" : "aligned");
                         });

class ConvolutionShapes : public Fp64Test {
 protected:
  ConvolutionInputs inputs() { return {.x = leaf({20, 6}, 1), .weight = leaf({4, 54}, 2), .images = images}; }
  const Images images{.count = 1, .channels = 6, .height = 4, .width = 5};
};

TEST_F(ConvolutionShapes, WhatDoesNotFitIsNamed) {
  const auto refused = [&](const std::function<void(ConvolutionInputs&)>& change, const std::vector<std::string>& parts) {
    ConvolutionInputs changed = inputs();
    change(changed);
    expect_error([&] { convolution(context, changed); }, parts);
  };
  refused([](ConvolutionInputs& of) { of.filter.height = 5; }, {"convolution: a filter of 5 x 3 does not fit in an image of 4 x 5"});
  refused([](ConvolutionInputs& of) { of.filter.stride_across = 0; }, {"convolution: the filter is 3 x 3 with strides 1 and 0"});
  refused([](ConvolutionInputs& of) { of.images.layout = ImageLayout::nchw; }, {"convolution: images are in nchw"});
  refused([](ConvolutionInputs& of) { of.images.channels = 5; }, {"convolution: x has shape [20, 6]", "[20, 5]"});
  refused(
      [&](ConvolutionInputs& of) {
        of.weight = leaf({4, 18}, 3);
      },
      {"convolution: the weight has shape [4, 18], 2 of 6 channels for each output, as of 3 groups; convolution has one group"});
  refused([&](ConvolutionInputs& of) { of.weight = leaf({6, 9}, 3); }, {"as of 6 groups"});
  refused(
      [&](ConvolutionInputs& of) {
        of.weight = leaf({4, 45}, 3);
      },
      {"convolution: the weight has shape [4, 45]; of a 3 x 3 filter over 6 channels it must be [outputs, 54]."});
  refused([&](ConvolutionInputs& of) { of.bias = leaf({1, 3}, 4); }, {"convolution: the bias has shape [1, 3]", "[1, 4]"});
  ConvolutionInputs fits = inputs();
  EXPECT_EQ(convolution(context, fits).shape(), (Shape{6, 4}));
}

}  // namespace
}  // namespace tilewave

// A convolution and its gradients by their definition, in double and loop by loop, and the operation's own in any precision beside it.
#pragma once

#include "framework/ops/convolution.h"
#include "tests/framework/support.h"
#include "tests/kernels/ops/im2col_problem.h"

namespace tilewave::testing_support {

struct ConvolutionNumbers {
  std::vector<double> x, weight, bias, dy;    // given
  std::vector<double> y, dx, dweight, dbias;  // made
};

inline constexpr std::int64_t kFilters = 5;

// y = x * weight + bias, and what sum(y dy) changes by x, weight and bias.
inline void convolve(const ConvolutionCase& c, ConvolutionNumbers& numbers) {
  const auto& [images, f] = c;
  const Images outputs = convolved(images, f, kFilters);
  const std::int64_t channels = images.channels;
  numbers.y.assign(static_cast<std::size_t>(outputs.rows() * kFilters), 0.0);
  numbers.dx.assign(numbers.x.size(), 0.0);
  numbers.dweight.assign(numbers.weight.size(), 0.0);
  numbers.dbias.assign(kFilters, 0.0);
  for (std::int64_t n = 0; n < images.count; ++n) {
    for (std::int64_t p = 0; p < outputs.height; ++p) {
      for (std::int64_t q = 0; q < outputs.width; ++q) {
        for (std::int64_t k = 0; k < kFilters; ++k) {
          const auto at = static_cast<std::size_t>(((n * outputs.height + p) * outputs.width + q) * kFilters + k),
                     out = static_cast<std::size_t>(k);
          double& y = numbers.y[at] = numbers.bias[out];
          const double dy = numbers.dy[at];
          numbers.dbias[out] += dy;
          for (std::int64_t r = 0; r < f.height; ++r) {
            for (std::int64_t s = 0; s < f.width; ++s) {
              const std::int64_t h = p * f.stride_down + r * f.dilation_down - f.padding_down,
                                 w = q * f.stride_across + s * f.dilation_across - f.padding_across;
              if (h < 0 || h >= images.height || w < 0 || w >= images.width) continue;
              for (std::int64_t channel = 0; channel < channels; ++channel) {
                const auto from = static_cast<std::size_t>(((n * images.height + h) * images.width + w) * channels + channel),
                           by = static_cast<std::size_t>(((k * f.height + r) * f.width + s) * channels + channel);
                y += numbers.x[from] * numbers.weight[by];
                numbers.dx[from] += dy * numbers.weight[by];
                numbers.dweight[by] += dy * numbers.x[from];
              }
            }
          }
        }
      }
    }
  }
}

// The same by the operation. Given numbers become those that the precision's types hold.
inline ConvolutionNumbers convolution_of(Context& context, const ConvolutionCase& c, ConvolutionNumbers& given) {
  const PrecisionTable& types = context.precision();
  const auto tensor_of = [&](Shape shape, std::vector<double>& numbers, DType dtype) {
    const Tensor tensor = context.tensor(shape, dtype);
    write_elements(context, tensor, numbers);
    numbers = read_elements(context, tensor);
    return tensor;
  };
  const auto leaf_of = [&](Shape shape, std::vector<double>& numbers, DType value, DType gradient) {
    return Variable::leaf(tensor_of(shape, numbers, value), context.tensor(shape, gradient));
  };
  const Images outputs = convolved(c.images, c.filter, kFilters);
  const Variable x = leaf_of({c.images.rows(), c.images.channels}, given.x, types.activation, types.activation);
  const Variable weight = leaf_of({kFilters, c.filter.taps() * c.images.channels}, given.weight, types.compute, types.gradient);
  const Variable bias = leaf_of({1, kFilters}, given.bias, types.compute, types.gradient);
  const Tensor dy = tensor_of({outputs.rows(), kFilters}, given.dy, types.activation);
  const Variable y = convolution(context, {.x = x, .weight = weight, .bias = bias, .images = c.images, .filter = c.filter});
  ConvolutionNumbers made{.y = read_elements(context, y.value())};
  backward(context, y, dy);
  made.dx = read_elements(context, x.gradient());
  made.dweight = read_elements(context, weight.gradient());
  made.dbias = read_elements(context, bias.gradient());
  return made;
}

// What may be lost by storing an activation, by rounding both operands of a product, and by a term of a sum.
struct ConvolutionErrors {
  double stored = 0.0, operands = 0.0, term = 0.0;
};

// The operation's numbers are the definition's, of numbers that the precision's types hold.
inline void expect_the_definitions(Context& context, const ConvolutionCase& c, ConvolutionErrors errors) {
  SCOPED_TRACE(text_of(c));
  Random random(3);
  const auto uniform = [&](std::int64_t count) {
    std::uniform_real_distribution<double> distribution(-1.0, 1.0);
    std::vector<double> numbers(static_cast<std::size_t>(count));
    for (double& number : numbers) number = distribution(random);
    return numbers;
  };
  const std::int64_t taps = c.filter.taps(), places = convolved(c.images, c.filter, 1).rows();
  ConvolutionNumbers numbers{.x = uniform(c.images.rows() * c.images.channels),
                             .weight = uniform(kFilters * taps * c.images.channels),
                             .bias = uniform(kFilters),
                             .dy = uniform(places * kFilters)};
  const ConvolutionNumbers made = convolution_of(context, c, numbers);
  convolve(c, numbers);
  const auto within = [&](const char* what, const std::vector<double>& actual, const std::vector<double>& expected, double error) {
    ASSERT_EQ(actual.size(), expected.size()) << what;
    ASSERT_GT(norm(expected), 0.0) << what;
    EXPECT_LE(relative_error(actual, expected), error) << what;
  };
  const auto sum = [&](std::int64_t length) { return errors.operands + errors.term * std::sqrt(static_cast<double>(length) + 1.0); };
  within("y", made.y, numbers.y, errors.stored + sum(taps * c.images.channels));
  within("dx", made.dx, numbers.dx, 2.0 * errors.stored + sum(taps * kFilters));  // columns' gradients are stored before they are summed
  within("dweight", made.dweight, numbers.dweight, sum(places));
  within("dbias", made.dbias, numbers.dbias, sum(places));
}

}  // namespace tilewave::testing_support

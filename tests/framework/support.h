// What the framework's tests share: a context in double precision, tensors from lists and back, sentences of errors, and gradient
// checks that come with their negative control.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "framework/autograd/gradcheck.h"
#include "framework/autograd/variable.h"
#include "framework/tensor/host_tensor.h"

namespace tilewave::testing_support {

class Fp64Test : public testing::Test {
 protected:
  Fp64Test() { context.write_step_state({.step = 1, .seed = 7, .real_tokens = 1}); }

  Variable leaf(Shape shape, std::uint64_t seed) { return random_leaf(context, shape, seed); }
  Tensor tensor_of(Shape shape, const std::vector<double>& elements) {
    const Tensor tensor = context.tensor(shape, DType::f64);
    write_elements(context, tensor, elements);
    return tensor;
  }
  Tensor ids_of(const std::vector<std::int32_t>& ids) {
    const Tensor tensor = context.tensor({1, static_cast<std::int64_t>(ids.size())}, DType::i32);
    write_ids(context, tensor, ids);
    return tensor;
  }
  Tensor segments_of(const std::vector<std::int32_t>& elements) {
    const Tensor tensor = context.tensor({static_cast<std::int64_t>(elements.size()) / 4, 4}, DType::i32);
    write_ids(context, tensor, elements);
    return tensor;
  }

  Context context{make_cpu_queue(1), probe_cpu(1), {.precision = Precision::fp64}};
};

// A tensor's elements on the host.
class HostMatrix {
 public:
  HostMatrix(std::int64_t rows, std::int64_t cols) : rows_(rows), cols_(cols), elements_(static_cast<std::size_t>(rows * cols)) {}
  HostMatrix(Context& context, const Tensor& tensor)
      : rows_(tensor.rows()), cols_(tensor.cols()), elements_(read_elements(context, tensor)) {}
  HostMatrix(Context& context, const Variable& variable) : HostMatrix(context, variable.value()) {}

  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  double& operator()(std::int64_t row, std::int64_t column) { return elements_[static_cast<std::size_t>(row * cols_ + column)]; }
  double operator()(std::int64_t row, std::int64_t column) const { return elements_[static_cast<std::size_t>(row * cols_ + column)]; }
  const std::vector<double>& elements() const& { return elements_; }
  std::vector<double> elements() && { return std::move(elements_); }

 private:
  std::int64_t rows_, cols_;
  std::vector<double> elements_;
};

inline double norm(const HostMatrix& matrix) {
  double sum = 0.0;
  for (const double element : matrix.elements()) sum += element * element;
  return std::sqrt(sum);
}

// x W^T + bias, bias being one row.
inline HostMatrix affine(const HostMatrix& x, const HostMatrix& weight, const HostMatrix& bias) {
  HostMatrix y(x.rows(), weight.rows());
  for (std::int64_t r = 0; r < y.rows(); ++r) {
    for (std::int64_t c = 0; c < y.cols(); ++c) {
      y(r, c) = bias(0, c);
      for (std::int64_t k = 0; k < x.cols(); ++k) y(r, c) += x(r, k) * weight(c, k);
    }
  }
  return y;
}

inline void expect_near(const HostMatrix& actual, const HostMatrix& expected, double tolerance = 1e-12) {
  ASSERT_EQ(actual.rows(), expected.rows());
  ASSERT_EQ(actual.cols(), expected.cols());
  ASSERT_GT(norm(expected), 0.0);
  for (std::int64_t r = 0; r < expected.rows(); ++r) {
    for (std::int64_t c = 0; c < expected.cols(); ++c) EXPECT_NEAR(actual(r, c), expected(r, c), tolerance) << "at " << r << ", " << c;
  }
}

// `function` throws an Error whose sentence says all of that.
inline void expect_error(const std::function<void()>& function, const std::vector<std::string>& parts) {
  try {
    function();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << part << " is not in: " << error.what();
  }
}

// Every gradient agrees with central differences and none of them is zero; with a wrong term in the operation's backward pass
// the same check fails.
inline void expect_gradients(Context& context, const std::string& operation, const GradcheckFunction& function,
                             const std::vector<NamedVariable>& variables) {
  const GradcheckReport report = gradcheck(context, function, variables);
  ASSERT_EQ(report.entries.size(), variables.size());
  for (const GradcheckEntry& entry : report.entries) {
    EXPECT_TRUE(entry.passed) << operation << ": " << entry.name << " is off by " << entry.error;
    EXPECT_GT(entry.norm, 0.0) << operation << ": " << entry.name;
    EXPECT_EQ(entry.probes, entry.shape.elements());
  }
  context.plant(operation);
  EXPECT_FALSE(gradcheck(context, function, variables).passed()) << operation << " with a wrong term";
  context.plant("");
}

}  // namespace tilewave::testing_support

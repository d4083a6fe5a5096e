// What the kernels' tests share: matrices with a pitch, poisoned outputs and guarded gaps; seeded random fills; the error of a
// result against a reference in double; queries of several thread counts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/core/queue.h"
#include "kernels/core/view.h"

namespace tilewave::testing_support {

using Floats = ::testing::Types<float, double>;
using Random = std::mt19937_64;

template <class T>
inline constexpr bool kIs16Bit = std::is_same_v<T, bf16> || std::is_same_v<T, f16>;

template <class T>
double to_double(T value) {
  if constexpr (kIs16Bit<T>) {
    return static_cast<float>(value);
  } else {
    return static_cast<double>(value);
  }
}

template <class T>
T from_double(double value) {
  if constexpr (kIs16Bit<T>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

// The distance from 1 to the next number.
template <class T>
constexpr double epsilon() {
  if constexpr (std::is_same_v<T, bf16>) {
    return 0x1p-7;
  } else if constexpr (std::is_same_v<T, f16>) {
    return 0x1p-10;
  } else {
    return static_cast<double>(std::numeric_limits<T>::epsilon());
  }
}

// A matrix with `gap` elements between rows and a guard row before and after. Everything starts as poison: a NaN, or for
// integers a number that is no index.
template <class T>
class Matrix {
 public:
  Matrix(std::int64_t rows, std::int64_t cols, std::int64_t gap = 3)
      : rows_(rows), cols_(cols), ld_(cols + gap), data_(static_cast<std::size_t>((rows + 2) * ld_), poison()) {}

  static Matrix uniform(std::int64_t rows, std::int64_t cols, Random& random, double low = -1.0, double high = 1.0) {
    Matrix matrix(rows, cols);
    std::uniform_real_distribution<double> distribution(low, high);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) matrix(r, c) = from_double<T>(distribution(random));
    }
    return matrix;
  }
  static Matrix filled(std::int64_t rows, std::int64_t cols, T value) {
    Matrix matrix(rows, cols);
    for (std::int64_t r = 0; r < rows; ++r) std::fill_n(&matrix(r, 0), cols, value);
    return matrix;
  }
  static Matrix row_of(const std::vector<T>& values) {
    Matrix matrix(1, static_cast<std::int64_t>(values.size()));
    if (!values.empty()) std::copy(values.begin(), values.end(), &matrix(0, 0));
    return matrix;
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  T& operator()(std::int64_t r, std::int64_t c) { return data_[static_cast<std::size_t>((r + 1) * ld_ + c)]; }
  const T& operator()(std::int64_t r, std::int64_t c) const { return data_[static_cast<std::size_t>((r + 1) * ld_ + c)]; }
  MatrixView view() { return {.data = data_.data() + ld_, .rows = rows_, .cols = cols_, .ld = ld_, .dtype = kDTypeOf<T>}; }
  ConstMatrixView view() const { return {data_.data() + ld_, rows_, cols_, ld_, kDTypeOf<T>}; }

  std::vector<T>& storage() { return data_; }  // guards and gaps included

  std::vector<double> values() const {
    std::vector<double> values;
    for (std::int64_t r = 0; r < rows_; ++r) {
      for (std::int64_t c = 0; c < cols_; ++c) values.push_back(to_double((*this)(r, c)));
    }
    return values;
  }
  bool guards_intact() const {
    const T guard = poison();
    for (std::int64_t at = 0; at < static_cast<std::int64_t>(data_.size()); ++at) {
      const std::int64_t r = at / ld_ - 1, c = at % ld_;
      const bool inside = r >= 0 && r < rows_ && c < cols_;
      if (!inside && std::memcmp(&data_[static_cast<std::size_t>(at)], &guard, sizeof(T)) != 0) return false;
    }
    return true;
  }
  friend bool same_bits(const Matrix& a, const Matrix& b) {
    return a.data_.size() == b.data_.size() && std::memcmp(a.data_.data(), b.data_.data(), a.data_.size() * sizeof(T)) == 0;
  }

 private:
  static T poison() {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(0x5eed0bad);
    } else {
      return from_double<T>(std::numeric_limits<double>::quiet_NaN());
    }
  }

  std::int64_t rows_, cols_, ld_;
  std::vector<T> data_;
};

inline double norm(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// ||actual - expected|| / ||expected||
inline double relative_error(const std::vector<double>& actual, const std::vector<double>& expected) {
  std::vector<double> difference(expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) difference[i] = actual[i] - expected[i];
  return norm(difference) / norm(expected);
}

// The relative error allowed to a result of T whose elements are sums of `length` rounded terms.
template <class T>
double tolerance(std::int64_t length) {
  return 8.0 * epsilon<T>() * std::sqrt(static_cast<double>(length) + 1.0);
}

// The result is the reference's within the tolerance, the reference is not zero, and nothing outside the matrix was written.
template <class T>
void expect_close(const Matrix<T>& actual, const std::vector<double>& expected, std::int64_t length) {
  ASSERT_EQ(actual.values().size(), expected.size());
  ASSERT_GT(norm(expected), 0.0);
  EXPECT_LE(relative_error(actual.values(), expected), tolerance<T>(length));
  EXPECT_TRUE(actual.guards_intact());
}

template <class T>
void expect_zero(const Matrix<T>& actual) {
  EXPECT_EQ(norm(actual.values()), 0.0);
  EXPECT_TRUE(actual.guards_intact());
}

// `gradient` is the central difference of loss() by each element of `input`, which loss() reads; one wrong element is noticed.
inline void expect_central_differences(Matrix<double>& input, const Matrix<double>& gradient, const std::function<double()>& loss) {
  constexpr double kStep = 1e-5;
  std::vector<double> differences;
  for (std::int64_t r = 0; r < input.rows(); ++r) {
    for (std::int64_t c = 0; c < input.cols(); ++c) {
      const double value = input(r, c);
      input(r, c) = value + kStep;
      const double above = loss();
      input(r, c) = value - kStep;
      const double below = loss();
      input(r, c) = value;
      differences.push_back((above - below) / (2.0 * kStep));
    }
  }
  ASSERT_GT(norm(differences), 0.0);
  EXPECT_LE(relative_error(gradient.values(), differences), 1e-8);
  differences.front() += 0.01 * norm(differences);
  EXPECT_GT(relative_error(gradient.values(), differences), 1e-3);
}

// fn() throws an Error whose sentence contains the text.
inline void expect_error(const std::function<void()>& fn, const std::string& text) {
  try {
    fn();
    ADD_FAILURE() << "nothing was thrown; expected: " << text;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

// fn(queue) writes the same bits into fresh outputs with every number of threads.
template <class T>
void expect_same_bits_for_every_thread_count(const std::function<std::vector<Matrix<T>>(CpuQueue&)>& fn) {
  CpuQueue one = make_cpu_queue(1);
  const std::vector<Matrix<T>> expected = fn(one);
  for (const int threads : {2, 3, 5}) {
    CpuQueue queue = make_cpu_queue(threads);
    const std::vector<Matrix<T>> actual = fn(queue);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_GT(norm(expected[i].values()), 0.0) << "output " << i;
      EXPECT_TRUE(same_bits(actual[i], expected[i])) << "output " << i << " with " << threads << " threads";
    }
  }
}

}  // namespace tilewave::testing_support

// What the operations' tests on a GPU share: element types, the same matrix in another type or at another pitch, a matrix with its
// twin on the device, the step's state there, and the errors that rounding allows.
#pragma once

#include "kernels/core/step_state.h"
#include "tests/kernels/gpu.h"

namespace tilewave::testing_support {

using DeviceFloats = ::testing::Types<float, double, bf16, f16>;

template <class T>
class GpuOperation : public GpuTest {};

// The type of statistics and of gradients of parameters.
template <class T>
using Statistics = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Gaps that make rows start anywhere, and at multiples of 16 elements.
enum class Pitch : std::uint8_t { odd, aligned };
inline constexpr Pitch kPitches[] = {Pitch::odd, Pitch::aligned};
constexpr std::int64_t gap_of(Pitch pitch, std::int64_t cols) { return pitch == Pitch::odd ? 3 - cols % 2 : 16 - cols % 16; }

template <class To, class From>
Matrix<To> converted(const Matrix<From>& from, std::int64_t gap = 3) {
  Matrix<To> to(from.rows(), from.cols(), gap);
  for (std::int64_t r = 0; r < from.rows(); ++r) {
    for (std::int64_t c = 0; c < from.cols(); ++c) {
      if constexpr (std::is_integral_v<To>) {
        to(r, c) = from(r, c);
      } else {
        to(r, c) = from_double<To>(to_double(from(r, c)));
      }
    }
  }
  return to;
}

// A matrix on the device: a copy of the given one, or poison of that shape.
template <class T>
class Twin {
 public:
  Twin(Queue& queue, const Matrix<T>& from, Pitch pitch = Pitch::odd)
      : host_(converted<T>(from, gap_of(pitch, from.cols()))), device_(queue, host_) {}
  Twin(Queue& queue, std::int64_t rows, std::int64_t cols, Pitch pitch = Pitch::odd)
      : host_(rows, cols, gap_of(pitch, cols)), device_(queue, host_) {}

  MatrixView view() const { return device_.view(); }
  const Matrix<T>& fetch() {
    device_.fetch();
    return host_;
  }

 private:
  Matrix<T> host_;
  OnDevice<T> device_;
};

class DeviceState {
 public:
  DeviceState(Queue& queue, const StepState& state) : queue_(queue), data_(allocate(queue, sizeof(StepState))) { write(state); }
  ~DeviceState() { release(queue_, data_); }
  DeviceState(const DeviceState&) = delete;
  DeviceState& operator=(const DeviceState&) = delete;

  StepState* get() const { return static_cast<StepState*>(data_); }
  void write(const StepState& state) { copy_to_device(queue_, data_, &state, sizeof(state)); }
  StepState read() const {
    StepState state;
    copy_to_host(queue_, &state, data_, sizeof(state));
    return state;
  }

 private:
  Queue& queue_;
  void* data_;
};

// Sums of `length` terms in the type of statistics, and one rounding to T.
template <class T>
double rounding(std::int64_t length) {
  return tolerance<Statistics<T>>(length) + (kIs16Bit<T> ? epsilon<T>() : 0.0);
}

template <class T>
void expect_rounded(const Matrix<T>& actual, const std::vector<double>& expected, std::int64_t length) {
  ASSERT_EQ(actual.values().size(), expected.size());
  ASSERT_GT(norm(expected), 0.0);
  EXPECT_LE(relative_error(actual.values(), expected), rounding<T>(length));
  EXPECT_TRUE(actual.guards_intact());
}

}  // namespace tilewave::testing_support

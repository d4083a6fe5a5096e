// One element's AdamW update and the step's scalars it takes, once for host and device; the formulas stand in kernels/ops/adamw.h.
#pragma once

#include <cmath>

#include "kernels/core/host_device.h"
#include "kernels/core/step_state.h"

namespace tilewave {

struct AdamWConstants {
  double beta1 = 0.0, beta2 = 0.0, epsilon = 0.0, weight_decay = 0.0;
};

// Computed in double and rounded once. `kept` is what decay leaves of a weight.
template <class T>
struct AdamWCoefficients {
  T gradient, beta1, beta2, one_minus_beta1, one_minus_beta2, kept, rate, root_correction, epsilon;
};

template <class T>
TW_HOST_DEVICE inline AdamWCoefficients<T> adamw_coefficients(const AdamWConstants& constants, const StepState& state) {
  const auto step = static_cast<double>(state.step);
  return {.gradient = static_cast<T>(state.clip_factor / state.gradient_scale),
          .beta1 = static_cast<T>(constants.beta1),
          .beta2 = static_cast<T>(constants.beta2),
          .one_minus_beta1 = static_cast<T>(1.0 - constants.beta1),
          .one_minus_beta2 = static_cast<T>(1.0 - constants.beta2),
          .kept = static_cast<T>(1.0 - state.learning_rate * constants.weight_decay),
          .rate = static_cast<T>(state.learning_rate / (1.0 - std::pow(constants.beta1, step))),
          .root_correction = static_cast<T>(1.0 / std::sqrt(1.0 - std::pow(constants.beta2, step))),
          .epsilon = static_cast<T>(constants.epsilon)};
}

template <class T>
TW_HOST_DEVICE inline void adamw_update(const AdamWCoefficients<T>& k, T gradient, T& weight, T& first, T& second) {
  const T g = gradient * k.gradient;
  const T m = k.beta1 * first + k.one_minus_beta1 * g;
  const T v = k.beta2 * second + k.one_minus_beta2 * g * g;
  first = m;
  second = v;
  weight = weight * k.kept - k.rate * m / (std::sqrt(v) * k.root_correction + k.epsilon);
}

}  // namespace tilewave

// What follows from the sum of the gradients' squares, once for host and device; kernels/ops/gradient_norm.h says what.
#pragma once

#include <cmath>

#include "kernels/core/host_device.h"
#include "kernels/ops/gradient_norm.h"

namespace tilewave {

TW_HOST_DEVICE inline void adjust_loss_scale(const LossScaling& scaling, bool finite, StepState& state) {
  if (finite) {
    state.good_steps += 1;
    if (state.good_steps < scaling.growth_interval) return;
    state.loss_scale *= scaling.factor;
  } else {
    if (state.loss_scale <= scaling.floor) state.scale_exhausted = 1;
    const double lower = state.loss_scale / scaling.factor;
    state.loss_scale = lower > scaling.floor ? lower : scaling.floor;
  }
  state.good_steps = 0;
}

TW_HOST_DEVICE inline void finish_gradient_norm(double sum_of_squares, double clip_norm, const LossScaling& scaling, StepState& state) {
  const double norm = std::sqrt(sum_of_squares) / state.loss_scale;
  const bool finite = std::isfinite(norm) && std::isfinite(state.loss);
  state.gradient_scale = state.loss_scale;
  state.gradient_norm = norm;
  state.clip_factor = clip_norm > 0.0 && norm > clip_norm ? clip_norm / norm : 1.0;
  if (!finite || scaling.enabled) state.found_nonfinite = finite ? 0 : 1;
  if (scaling.enabled) adjust_loss_scale(scaling, finite, state);
}

}  // namespace tilewave

// Learning rate of a step, counted from 1: a linear warm-up to the peak, then constant, falling with the inverse square root of
// the step (Vaswani et al., "Attention Is All You Need", 2017, section 5.3, scaled to meet the peak), along half a cosine
// (Loshchilov and Hutter, "SGDR", 2017), along a line, or along a line behind a stretch at the peak (warm-up, stable, decay: Hu et al.,
// "MiniCPM", 2024) to a least rate, where it stays.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace tilewave {

enum class ScheduleKind : std::uint8_t { constant, inverse_square_root, cosine, linear, warmup_stable_decay };

struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double peak = 1e-3;
  std::int64_t warmup_steps = 0;
  std::int64_t decay_steps = 0;  // the step at which a fall to `least` ends
  std::int64_t decay_from = 0;   // warmup_stable_decay: the step behind which it begins
  double least = 0.0;

  bool ends() const { return kind != ScheduleKind::constant && kind != ScheduleKind::inverse_square_root; }
};

inline double learning_rate(const Schedule& schedule, std::int64_t step) {
  const auto warmup = static_cast<double>(schedule.warmup_steps), now = static_cast<double>(step);
  if (step <= schedule.warmup_steps) return schedule.peak * now / warmup;
  const auto progress_from = [&](double begin) {
    const double length = static_cast<double>(schedule.decay_steps) - begin;
    return length > 0.0 ? std::clamp((now - begin) / length, 0.0, 1.0) : 1.0;
  };
  const auto fallen = [&](double left) { return schedule.least + (schedule.peak - schedule.least) * left; };
  switch (schedule.kind) {
    case ScheduleKind::constant:
      return schedule.peak;
    case ScheduleKind::inverse_square_root:
      return schedule.peak * std::sqrt(std::max(warmup, 1.0) / now);
    case ScheduleKind::cosine: {
      const double wave = 1.0 + std::cos(std::numbers::pi * progress_from(warmup));
      return schedule.least > 0.0 ? fallen(0.5 * wave) : schedule.peak * 0.5 * wave;  // in this order, which earlier runs were computed in
    }
    case ScheduleKind::linear:
      return fallen(1.0 - progress_from(warmup));
    case ScheduleKind::warmup_stable_decay:
      return fallen(1.0 - progress_from(static_cast<double>(schedule.decay_from)));
  }
  return schedule.peak;
}

}  // namespace tilewave

// Learning rate of a step, counted from 1: a linear warm-up to the peak, then constant, falling with the inverse square root of
// the step (Vaswani et al., "Attention Is All You Need", 2017, section 5.3, scaled to meet the peak), or along half a cosine
// (Loshchilov and Hutter, "SGDR", 2017) to zero, where it stays.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace tilewave {

enum class ScheduleKind : std::uint8_t { constant, inverse_square_root, cosine };

struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double peak = 1e-3;
  std::int64_t warmup_steps = 0;
  std::int64_t decay_steps = 0;  // cosine: the step at which it ends
};

inline double learning_rate(const Schedule& schedule, std::int64_t step) {
  const auto warmup = static_cast<double>(schedule.warmup_steps), now = static_cast<double>(step);
  if (step <= schedule.warmup_steps) return schedule.peak * now / warmup;
  switch (schedule.kind) {
    case ScheduleKind::constant:
      return schedule.peak;
    case ScheduleKind::inverse_square_root:
      return schedule.peak * std::sqrt(std::max(warmup, 1.0) / now);
    case ScheduleKind::cosine: {
      const double length = static_cast<double>(schedule.decay_steps) - warmup;
      const double progress = length > 0.0 ? std::min(1.0, (now - warmup) / length) : 1.0;
      return schedule.peak * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
    }
  }
  return schedule.peak;
}

}  // namespace tilewave

#include "app/text/units.h"

#include <cmath>
#include <cstdio>
#include <iterator>
#include <span>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

struct Unit {
  const char* name;
  double size;
};
constexpr Unit kTimes[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}};
constexpr Unit kRates[] = {{"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}};

std::string with_separators(std::string digits) {
  const std::size_t first = digits.starts_with('-') || digits.starts_with('+') ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

// Four digits, in the largest unit that leaves one of them before the point.
std::string in_units(double value, std::span<const Unit> units) {
  for (std::size_t i = 0;; ++i) {
    const double shown = value / units[i].size;
    const bool last = i + 1 == units.size();
    if (!last && shown >= 999.95) continue;
    if (shown >= 999.95) return concat(count_text(std::llround(shown)), ' ', units[i].name);
    return concat(number_text(shown, shown < 9.9995 ? "%.3f" : shown < 99.995 ? "%.2f" : "%.1f"), ' ', units[i].name);
  }
}

}  // namespace

std::string number_text(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string known_text(double value, const char* format) { return value > 0.0 ? number_text(value, format) : "unknown"; }

std::string count_text(std::int64_t count) { return with_separators(std::to_string(count)); }

std::string signed_count_text(std::int64_t count) { return with_separators(concat(count < 0 ? "" : "+", count)); }

std::string time_text(double seconds) { return std::isfinite(seconds) && seconds > 0.0 ? in_units(seconds, kTimes) : "unknown"; }

std::string duration_text(double seconds) {
  if (seconds < 9.95) return time_text(seconds);
  return seconds < 999.95 ? number_text(seconds, "%.1f s") : count_text(std::llround(seconds)) + " s";
}

std::string rate_text(double per_s) { return per_s < 99.95 ? number_text(per_s, "%.3g") : count_text(std::llround(per_s)); }

std::string flops_text(double flops_per_s) { return in_units(flops_per_s, kRates); }

std::string bytes_text(std::int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024.0 && unit + 1 < std::size(kUnits); ++unit) value /= 1024.0;
  return concat(number_text(value, unit == 0 ? "%.0f" : "%.1f"), ' ', kUnits[unit]);
}

std::string signed_bytes_text(std::int64_t bytes) { return concat(bytes < 0 ? "-" : "+", bytes_text(std::abs(bytes))); }

std::string percent_text(double fraction, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f %%", digits, 100.0 * fraction);
  return text;
}

std::string gain_text(double fraction, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%+.*f %%", digits, 100.0 * fraction);
  return text;
}

std::string gain_or_nothing(const std::optional<double>& fraction, int digits) {
  return fraction ? gain_text(*fraction, digits) : std::string();
}

std::string device_text(const DeviceInfo& device) {
  const char* const units = device.backend == Backend::cuda ? " SM" : " thread";
  return concat(device.name, " (", device.sm_count, units, device.sm_count == 1 ? ")" : "s)");
}

RateUnit rate_unit(double largest_flops_per_s) {
  return largest_flops_per_s >= 1e12 ? RateUnit{"TFLOP/s", 1e-12} : RateUnit{"GFLOP/s", 1e-9};
}

RateUnit rate_unit(Backend backend) { return rate_unit(backend == Backend::cuda ? 1e12 : 1e9); }

}  // namespace tilewave

#include "models/figures/figure.h"

#include <tuple>

namespace tilewave {

std::string_view label_of(Quantity quantity) {
  constexpr std::string_view names[] = {"time (us)", "TFLOP/s", "GB/s", "tiles", "FLOP/byte"};
  return names[static_cast<int>(quantity)];
}

std::int64_t FigureSetting::sized(std::int64_t size) const {
  constexpr std::int64_t kMultiple = 8, kToy = 16;
  if (!toy()) return size;
  const std::int64_t whole = round_up(size, kMultiple);
  return round_up(ceil_div(whole, kToy), kMultiple) - (whole - size);
}

double FigureRecord::value(Quantity quantity, double seconds) const {
  switch (quantity) {
    case Quantity::time:
      return 1e6 * seconds;
    case Quantity::rate:
      return 1e-12 * static_cast<double>(flops) / seconds;
    case Quantity::bandwidth:
      return 1e-9 * static_cast<double>(bytes) / seconds;
    case Quantity::tiles:
      return tiles > 0 ? static_cast<double>(tiles) : NAN;
    case Quantity::intensity:
      return flops_per_byte();
  }
  return NAN;
}

bool FigureRecord::same_question(const FigureRecord& other) const {
  const auto asked = [](const FigureRecord& r) {
    return std::tie(r.series, r.group, r.label, r.operation, r.phase, r.m, r.n, r.k, r.dtype, r.pitch, r.a_alignment, r.b_alignment,
                    r.d_alignment, r.kernel, r.tile, r.split);
  };
  return asked(*this) == asked(other);
}

}  // namespace tilewave

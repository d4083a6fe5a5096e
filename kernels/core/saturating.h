// Products of counts that stop at the largest number instead of passing it.
#pragma once

#include <cstdint>
#include <limits>

namespace tilewave {

inline constexpr std::int64_t kUncountable = std::numeric_limits<std::int64_t>::max();

// The product of numbers that are not negative, kUncountable where it is more.
template <class... Counts>
constexpr std::int64_t saturating_product(std::int64_t first, Counts... others) {
  std::int64_t product = first;
  bool more = false, none = first == 0;
  const auto multiply = [&](std::int64_t count) {
    more = __builtin_mul_overflow(product, count, &product) || more;
    none = none || count == 0;
  };
  (multiply(others), ...);
  if (none) return 0;
  return more ? kUncountable : product;
}

}  // namespace tilewave

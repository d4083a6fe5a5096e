// The CPU's side of kernels/core/beside_steps.h.
#include "kernels/core/beside_steps.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/core/element.h"
#include "kernels/cpu/core/row_ranges.h"
#include "kernels/math/normal_draw.h"

namespace tilewave {

void fill_normal(CpuQueue& queue, const MatrixView& y, std::uint64_t seed) {
  with_element(y.dtype, [&]<class T>(T) {
    for_row_ranges(queue, y.rows, y.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        for (std::int64_t c = 0; c < y.cols; ++c) y.row<T>(r)[c] = converted<T>(normal_draw(seed, r, c));
      }
    });
  });
}

ErrorNorms error_norms(CpuQueue&, const ConstMatrixView& actual, const ConstMatrixView& expected) {
  ErrorNorms squares;
  with_element(actual.dtype, [&]<class A>(A) {
    with_element(expected.dtype, [&]<class E>(E) {
      for (std::int64_t r = 0; r < actual.rows; ++r) {
        for (std::int64_t c = 0; c < actual.cols; ++c) {
          const auto a = converted<double>(actual.row<A>(r)[c]), e = converted<double>(expected.row<E>(r)[c]);
          squares.difference += (a - e) * (a - e);
          squares.reference += e * e;
        }
      }
    });
  });
  return {.difference = std::sqrt(squares.difference), .reference = std::sqrt(squares.reference)};
}

std::vector<RankedColumn> largest_of(CpuQueue&, const RankedRow& row, std::int64_t count) {
  const auto* columns = row.columns.row<std::int32_t>(0);
  std::vector<RankedColumn> ranked;
  with_element(row.row.dtype, [&]<class T>(T) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(row.columns.cols));
    std::iota(order.begin(), order.end(), 0);
    const auto value = [&](std::int64_t place) { return converted<double>(row.row.row<T>(0)[columns[place]]); };
    std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](std::int64_t a, std::int64_t b) {
      const double left = value(a), right = value(b);
      return left != right ? left > right : a < b;
    });
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t place = order[static_cast<std::size_t>(i)];
      ranked.push_back({.column = columns[place], .value = value(place)});
    }
  });
  return ranked;
}

}  // namespace tilewave

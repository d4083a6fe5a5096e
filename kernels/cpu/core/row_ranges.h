// How row-wise work is shared out: ranges of rows with about kElementsPerRange elements each. The partition depends on shapes
// alone, never on the number of threads; a matrix of one range is worked on by the caller without waking anybody.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/core/queue.h"
#include "kernels/cpu/core/thread_pool.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

inline constexpr std::int64_t kElementsPerRange = 16384;

constexpr std::int64_t rows_per_range(std::int64_t cols) {
  return std::max<std::int64_t>(1, kElementsPerRange / std::max<std::int64_t>(1, cols));
}

// fn(begin, end) for ranges that cover [0, rows).
template <class Fn>
void for_row_ranges(CpuQueue& queue, std::int64_t rows, std::int64_t cols, const Fn& fn) {
  const std::int64_t step = rows_per_range(cols);
  queue.threads->parallel_for(ceil_div(rows, step), [&](std::int64_t index, int) { fn(index * step, std::min(rows, (index + 1) * step)); });
}

// The rows of many matrices in one loop.
struct RowRange {
  std::size_t matrix = 0;
  std::int64_t begin = 0, end = 0;
};

template <class Matrices, class ViewOf>
std::vector<RowRange> row_ranges(const Matrices& matrices, const ViewOf& view_of) {
  std::vector<RowRange> ranges;
  for (std::size_t matrix = 0; matrix < matrices.size(); ++matrix) {
    const auto& view = view_of(matrices[matrix]);
    const std::int64_t step = rows_per_range(view.cols);
    for (std::int64_t begin = 0; begin < view.rows; begin += step) {
      ranges.push_back({.matrix = matrix, .begin = begin, .end = std::min(view.rows, begin + step)});
    }
  }
  return ranges;
}

}  // namespace tilewave

// What the CPU's vectorised rows share: an operand by rows, the loop over tiles, the check that all operands have one type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/core/queue.h"
#include "kernels/cpu/core/simd_targets.h"
#include "kernels/cpu/core/thread_pool.h"
#include "kernels/gemm/facts/tile_shares.h"
#include "kernels/gemm/gemm.h"

namespace tilewave {

// A part of D as it lies in memory: `count` neighbours from i on, in `columns` rows from j on.
struct Outputs {
  std::int64_t i = 0, count = 0, j = 0, columns = 0;
};

// One operand as rows along i (or j), whatever its major was.
template <class T>
struct OperandRows {
  const T* data = nullptr;
  std::int64_t row_stride = 0, k_stride = 0;  // one of them is 1
  std::int64_t k = 0;

  const T* at(std::int64_t row, std::int64_t step) const { return data + row * row_stride + step * k_stride; }
};

template <class T>
OperandRows<T> rows_of(const ConstMatrixView& view, Major major) {
  const bool along_k = major == Major::k;
  return {
      .data = view.row<T>(0), .row_stride = along_k ? view.ld : 1, .k_stride = along_k ? 1 : view.ld, .k = along_k ? view.cols : view.rows};
}

struct TileLoop {
  TileGrid grid;
  std::int64_t multiply_adds = 0;
  std::int64_t threads = 1;            // at most
  std::int64_t alone_below = 1 << 17;  // multiply-adds
};

// fn(tile, thread) for every tile: on the queue's threads, or alone where the work is done before they are awake.
template <class Fn>
void for_each_tile(CpuQueue& queue, const TileLoop& loop, Fn&& fn) {
  const std::int64_t tiles = loop.grid.tiles();
  const std::int64_t threads = loop.multiply_adds < loop.alone_below ? 1 : std::min<std::int64_t>(loop.threads, queue.threads->size());
  if (threads == 1 || tiles == 1) return queue.threads->parallel_for(tiles, fn, 1);
  const TileShares shares(loop.grid, threads);
  const std::vector<std::int64_t> order = shares.order();
  queue.threads->parallel_for(shares.ends(), [&](std::int64_t index, int thread) { fn(order[static_cast<std::size_t>(index)], thread); });
}

inline void check_one_type(const GemmArgs& args, std::string_view row) {
  const ConstMatrixView views[] = {args.bias, args.saved_input, args.derivative_of, args.residual, args.bias_gradient};
  for (const ConstMatrixView& view : views) {
    TW_CHECK(!view || view.dtype == args.d.dtype, "gemm ", name_of(args.role), ": ", row, " wants every operand in one type; D is ",
             name_of(args.d.dtype), " and one of bias, saved_input, derivative_of, residual and bias gradient is ", name_of(view.dtype),
             ".");
  }
}

}  // namespace tilewave

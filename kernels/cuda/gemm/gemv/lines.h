// A matrix across K as a warp reads it: lane 8 q + g (of gemv_axpy; 4 g + q of gemv_axpy_mma, where g is a row of an MMA) has a word of
// line g of steps 8 q to 8 q + 7 of K, so that each load of the warp is four whole lines of 128 bytes.
#pragma once

#include "kernels/cuda/gemm/gemv/gemv.h"

namespace tilewave {

// The words of kSteps of K from step k on, at row `first` of the matrix; zeros for what lies outside. Words at the matrix's last rows are
// read element by element, as what lies behind them may not be there.
template <class T, bool kShifted, int kSteps, class Sum>
__device__ __forceinline__ void load_lines(const GemvProblem<Sum>& p, std::int64_t first, int k, int end, uint4 (&words)[kSteps]) {
  using Row = RowOfWords<T, kShifted>;
  const T* line = static_cast<const T*>(p.matrix.data) + k * p.matrix.along + first;
  if (first + (kShifted ? 2 : 1) * kWordElements<T> <= p.rows) {
    uint4 loaded[kSteps][Row::kLoads];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) Row(line + step * p.matrix.along).template load<true>(0, k + step < end, loaded[step]);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) words[step] = Row(line + step * p.matrix.along).word(loaded[step]);
  } else {
    const int valid = static_cast<int>(min(p.rows - first, std::int64_t{kWordElements<T>}));
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      words[step] = gather_word(line + step * p.matrix.along, 1, k + step < end ? valid : 0);
    }
  }
}

}  // namespace tilewave

// What stands beside training steps: random operands, errors of results, the largest numbers of a row. Each works where the numbers lie,
// may take memory for itself, and has ended when the call returns, so none is part of a step that is captured. A trace has no numbers:
// there a fill does nothing, and the others are an Error.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/queue.h"
#include "kernels/core/view.h"

namespace tilewave {

// Nearly normal numbers of mean 0 and variance 1, each a function of seed, row and column alone: the same on every device. Any
// floating-point type.
void fill_normal(Queue& queue, const MatrixView& y, std::uint64_t seed);

// ||actual - expected|| and ||expected||, summed in double. Two matrices of one shape, of any floating-point types.
struct ErrorNorms {
  double difference = 0.0, reference = 0.0;

  double relative() const { return difference / reference; }
};
ErrorNorms error_norms(Queue& queue, const ConstMatrixView& actual, const ConstMatrixView& expected);

// The `count` largest of a row among the columns named, the largest first; of equal ones the one that is named first.
struct RankedColumn {
  std::int32_t column = 0;
  double value = 0.0;

  friend bool operator==(const RankedColumn&, const RankedColumn&) = default;
};
struct RankedRow {
  ConstMatrixView row;      // [1, cols], any floating-point type
  ConstMatrixView columns;  // [1, at least count] i32, below cols
};
std::vector<RankedColumn> largest_of(Queue& queue, const RankedRow& row, std::int64_t count);

// What a back end does of them, behind the checks.
void fill_normal(CpuQueue& queue, const MatrixView& y, std::uint64_t seed);
void fill_normal(CudaQueue& queue, const MatrixView& y, std::uint64_t seed);
ErrorNorms error_norms(CpuQueue& queue, const ConstMatrixView& actual, const ConstMatrixView& expected);
ErrorNorms error_norms(CudaQueue& queue, const ConstMatrixView& actual, const ConstMatrixView& expected);
std::vector<RankedColumn> largest_of(CpuQueue& queue, const RankedRow& row, std::int64_t count);
std::vector<RankedColumn> largest_of(CudaQueue& queue, const RankedRow& row, std::int64_t count);

}  // namespace tilewave

// Pictures as they come to a device, a byte for each value, become what a model reads:
//   y[n h w, c] = table[c, shades[n h w, c]], rounded to y's type
// Rows from real_rows on belong to no picture: they are zero, and no shades are read for them. There is no matrix type of bytes: shades lie
// four in a word of 32 bits, in the order of the host's memory, which is y's, row after row without gaps.
#pragma once

#include "kernels/core/queue.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

inline constexpr std::int64_t kShades = 256;  // that a byte can be

// Words that so many shades lie in.
constexpr std::int64_t words_of_shades(std::int64_t shades) { return ceil_div(shades, std::int64_t{4}); }

struct NormalizePixelsArgs {
  static constexpr std::string_view kOperation = "normalize_pixels";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::other_share};
  ConstMatrixView shades;      // i32 [1, words_of_shades(N H W C)]
  ConstMatrixView table;       // f32 [C, kShades]: what each shade of a channel becomes
  MatrixView y;                // [N H W, C], of any floating-point type
  std::int64_t real_rows = 0;  // of y: what shades are there for
};

inline Cost cost(const NormalizePixelsArgs& args) {
  return {.flops = 0, .bytes = args.real_rows * args.y.cols + args.table.bytes() + args.y.bytes()};
}
// Throws Error where shapes differ, y is of no floating-point type, or more rows are real than there are.
void check(const NormalizePixelsArgs& args);
void run(CpuQueue& queue, const NormalizePixelsArgs& args);
void run(CudaQueue& queue, const NormalizePixelsArgs& args);

}  // namespace tilewave

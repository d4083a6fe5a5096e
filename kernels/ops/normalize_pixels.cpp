// What normalize_pixels asks of its arguments.
#include "kernels/ops/normalize_pixels.h"

#include "kernels/core/contract.h"

namespace tilewave {

void check(const NormalizePixelsArgs& args) {
  const Contract contract(NormalizePixelsArgs::kOperation);
  TW_CHECK(args.y.dtype != DType::i32, "normalize_pixels: y is ", name_of(args.y.dtype), "; it must be of a floating-point type.");
  contract.expect("y", args.y, shape_of(args.y));
  contract.expect("shades", args.shades, {.rows = 1, .cols = words_of_shades(args.y.rows * args.y.cols), .dtype = DType::i32});
  contract.expect("table", args.table, {.rows = args.y.cols, .cols = kShades, .dtype = DType::f32});
  TW_CHECK(args.real_rows >= 0 && args.real_rows <= args.y.rows, "normalize_pixels: ", args.real_rows, " rows of y are real; y has ",
           args.y.rows, ", so say a number from 0 to that.");
}

}  // namespace tilewave

// What convert asks of its views.
#include "kernels/ops/convert.h"

#include "kernels/core/contract.h"

namespace tilewave {

void check(const ConvertArgs& args) {
  TW_CHECK(args.x.dtype != DType::i32 && args.y.dtype != DType::i32, "convert: x is ", name_of(args.x.dtype), " and y is ",
           name_of(args.y.dtype), "; both must be floating-point types.");
  Contract(ConvertArgs::kOperation).expect("y", args.y, {.rows = args.x.rows, .cols = args.x.cols, .dtype = args.y.dtype});
}

}  // namespace tilewave

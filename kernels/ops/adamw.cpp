// What AdamW asks of its arguments.
#include "kernels/ops/adamw.h"

#include "kernels/core/contract.h"

namespace tilewave {

void check(const AdamWArgs& args) {
  const Contract contract(AdamWArgs::kOperation);
  TW_CHECK(args.state != nullptr, "adamw needs the step's state: step, learning rate and clip factor are read there.");
  for (const AdamWTensor& tensor : args.tensors) {
    const ViewShape shape = shape_of(tensor.master);
    TW_CHECK(shape.dtype == statistics_of(shape.dtype), "adamw: master is ", shape, "; weights are updated in f32 or f64.");
    TW_CHECK(tensor.compute.dtype != DType::i32, "adamw: a compute copy cannot be i32; it must be a floating-point type.");
    contract.expect("gradient", tensor.gradient, shape);
    contract.expect("first_moment", tensor.first_moment, shape);
    contract.expect("second_moment", tensor.second_moment, shape);
    contract.expect_if_present("compute", tensor.compute, {.rows = shape.rows, .cols = shape.cols, .dtype = tensor.compute.dtype});
  }
}

}  // namespace tilewave

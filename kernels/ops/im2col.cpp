// What im2col and col2im ask of their arguments.
#include "kernels/ops/im2col.h"

#include "kernels/core/contract.h"

namespace tilewave {
namespace {

// The matrix of columns that the images make.
template <class Args>
ViewShape columns_shape(const Args& args, DType dtype) {
  const std::string refusal = refuse_convolution(args.images, args.filter);
  TW_CHECK(refusal.empty(), Args::kOperation, ": ", refusal);
  return {.rows = convolved(args.images, args.filter, 1).rows(), .cols = args.filter.taps() * args.images.channels, .dtype = dtype};
}

ViewShape images_shape(const Images& images, DType dtype) { return {.rows = images.rows(), .cols = images.cols(), .dtype = dtype}; }

}  // namespace

void check(const Im2colArgs& args) {
  const Contract contract(Im2colArgs::kOperation);
  const ViewShape columns = columns_shape(args, args.x.dtype);
  contract.expect("x", args.x, images_shape(args.images, args.x.dtype));
  contract.expect("columns", args.columns, columns);
}

void check(const Col2imArgs& args) {
  const Contract contract(Col2imArgs::kOperation);
  const ViewShape columns = columns_shape(args, args.dcolumns.dtype);
  contract.expect("dcolumns", args.dcolumns, columns);
  contract.expect("dx", args.dx, images_shape(args.images, args.dcolumns.dtype));
}

}  // namespace tilewave

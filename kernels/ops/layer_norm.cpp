// What layer normalisation asks of its arguments.
#include "kernels/ops/layer_norm.h"

#include "kernels/core/contract.h"

namespace tilewave {
namespace {

struct Shapes {
  ViewShape matrix, vector, statistic, gradient;
};

Shapes shapes_of(const ConstMatrixView& x) {
  const DType statistics = statistics_of(x.dtype);
  return {.matrix = shape_of(x),
          .vector = {.rows = 1, .cols = x.cols, .dtype = x.dtype},
          .statistic = {.rows = x.rows, .cols = 1, .dtype = statistics},
          .gradient = {.rows = 1, .cols = x.cols, .dtype = statistics}};
}

}  // namespace

void check(const LayerNormArgs& args) {
  const Contract contract(LayerNormArgs::kOperation);
  const Shapes shapes = shapes_of(args.x);
  contract.expect("gamma", args.gamma, shapes.vector);
  contract.expect("beta", args.beta, shapes.vector);
  contract.expect("y", args.y, shapes.matrix);
  contract.expect("mean", args.mean, shapes.statistic);
  contract.expect("rstd", args.rstd, shapes.statistic);
}

void check(const LayerNormBackwardArgs& args) {
  const Contract contract(LayerNormBackwardArgs::kOperation);
  const Shapes shapes = shapes_of(args.x);
  contract.expect("gamma", args.gamma, shapes.vector);
  contract.expect("mean", args.mean, shapes.statistic);
  contract.expect("rstd", args.rstd, shapes.statistic);
  contract.expect("dy", args.dy, shapes.matrix);
  contract.expect("dx", args.dx, shapes.matrix);
  contract.expect("dgamma", args.dgamma, shapes.gradient);
  contract.expect("dbeta", args.dbeta, shapes.gradient);
  contract.expect("partial", args.partial,
                  {.rows = layer_norm_partial_rows(args.x.rows), .cols = args.x.cols, .dtype = shapes.gradient.dtype});
}

}  // namespace tilewave

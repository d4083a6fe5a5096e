#include "framework/ops/convolution_passes.h"

#include <memory>

#include "framework/ops/gemm_roles.h"
#include "kernels/ops/im2col.h"

namespace tilewave {
namespace {

// The same memory, each `count` rows of it joined in one.
Tensor joined_rows(const Tensor& x, std::int64_t count) {
  return {std::shared_ptr<void>(std::make_shared<Tensor>(x), x.data()), {x.rows() / count, x.cols() * count}, x.pitch() * count, x.dtype()};
}

}  // namespace

Tensor convolution_columns(Context& context, const Tensor& x, const ConvolvedImages& of) {
  const auto& [images, filter] = of;
  const std::int64_t taps = filter.taps();
  if (columns_in_place(x.pitch(), images, filter)) return joined_rows(x, taps);
  const Tensor columns = context.tensor({convolved(images, filter, 1).rows(), taps * images.channels}, x.dtype());  // [N P Q, R S C]
  context.launch(Im2colArgs{.x = x.view(), .columns = columns.view(), .images = images, .filter = filter});
  return columns;
}

void launch_convolution_dgrad(Context& context, const Tensor& weight, const Tensor& dz, const GradientSlot::Target& dx,
                              const ConvolvedImages& of) {
  const auto& [images, filter] = of;
  if (columns_in_place(dx.gradient.pitch(), images, filter)) {
    GemmArgs args = dgrad_gemm(weight, dz, joined_rows(dx.gradient, filter.taps()));
    args.accumulate = dx.accumulate;
    return launch_gemm(context, args);
  }
  const Tensor dcolumns = context.tensor({dz.rows(), weight.cols()}, dz.dtype());  // [N P Q, R S C]
  launch_gemm(context, dgrad_gemm(weight, dz, dcolumns));
  context.launch(Col2imArgs{.dcolumns = dcolumns.view(), .dx = dx.view(), .accumulate = dx.accumulate, .images = images, .filter = filter});
}

}  // namespace tilewave

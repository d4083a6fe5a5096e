// convolution: forward and backward.
#include "framework/ops/convolution.h"

#include "framework/ops/convolution_passes.h"
#include "framework/ops/gemm_roles.h"
#include "kernels/ops/activation.h"

namespace tilewave {
namespace {

void check_inputs(const ConvolutionInputs& inputs) {
  const auto& [x, weight, bias, images, filter, activation] = inputs;
  const std::string refusal = refuse_convolution(images, filter);
  TW_CHECK(refusal.empty(), "convolution: ", refusal);
  check_same_shape("convolution", "x", x.shape(), "images, a row a pixel,", {images.rows(), images.cols()});
  const std::int64_t all = filter.taps() * images.channels, has = weight.cols();
  const bool grouped = has > 0 && has < all && all % has == 0 && has % filter.taps() == 0;
  TW_CHECK(!grouped, "convolution: the weight has shape ", weight.shape(), ", ", has / filter.taps(), " of ", images.channels,
           " channels for each output, as of ", all / has, " groups; convolution has one group: give it [outputs, ", all,
           "], zero where a group has nothing.");
  TW_CHECK(has == all, "convolution: the weight has shape ", weight.shape(), "; of a ", filter.height, " x ", filter.width, " filter over ",
           images.channels, " channels it must be [outputs, ", all, "].");
  if (bias) check_same_shape("convolution", "the bias", bias.shape(), "one row of the result", {1, weight.rows()});
}

}  // namespace

Variable convolution(Context& context, const ConvolutionInputs& inputs) {
  check_inputs(inputs);
  const Tensor x = inputs.x.value();            // [N H W, C]
  const Tensor weight = inputs.weight.value();  // [K, R S C]
  const ConvolvedImages of{.images = inputs.images, .filter = inputs.filter};
  const Activation activation = inputs.activation;
  const Shape shape{convolved(of.images, of.filter, weight.rows()).rows(), weight.rows()};

  // y = activation(z),  z = columns W^T + b
  const Tensor y = context.tensor(shape, x.dtype());  // [N P Q, K]
  const bool differentiates = context.gradient_mode() == GradientMode::on && activation != Activation::none;
  const Tensor z = differentiates ? context.tensor(shape, x.dtype()) : Tensor();  // [N P Q, K]
  {
    const Tensor columns = convolution_columns(context, x, of);  // [N P Q, R S C]
    GemmArgs args = forward_gemm(weight, columns, y);
    if (inputs.bias) args.bias = inputs.bias.value().view();
    args.activation = activation;
    if (z) args.saved_input = z.view();
    launch_gemm(context, args);
  }

  // dz = dy activation'(z);  dW = dz^T columns;  db = sum(dz);  dx = col2im(dz W)
  return make_variable(context, y, "convolution", {inputs.x, inputs.weight, inputs.bias},
                       [x, weight, z, of, activation](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
                         GradientSlot &dx = slots[0], &dweight = slots[1], &dbias = slots[2];
                         const Tensor dz = dy;  // [N P Q, K]
                         if (z)
                           ctx.launch(ActivationBackwardArgs{.x = z.view(), .dy = dy.view(), .dx = dz.view(), .activation = activation});
                         if (dweight.needed() || dbias.needed()) launch_wgrad(ctx, convolution_columns(ctx, x, of), dz, dweight, dbias);
                         if (dx.needed()) launch_convolution_dgrad(ctx, weight, dz, dx.open(ctx), of);
                       });
}

}  // namespace tilewave

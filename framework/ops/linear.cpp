// linear: forward and backward.
#include "framework/ops/linear.h"

#include "framework/ops/gemm_roles.h"
#include "kernels/ops/activation.h"

namespace tilewave {

Variable linear(Context& context, const LinearInputs& inputs) {
  const Tensor x = inputs.x.value();            // [tokens, in]
  const Tensor weight = inputs.weight.value();  // [out, in]
  TW_CHECK(x.cols() == weight.cols(), "linear: x has shape ", x.shape(), " and the weight has shape ", weight.shape(),
           "; x's columns must be the weight's.");
  const Shape shape{x.rows(), weight.rows()};
  if (inputs.bias) check_same_shape("linear", "the bias", inputs.bias.shape(), "one row of the result", {1, shape.cols});
  if (inputs.residual) check_same_shape("linear", "the residual", inputs.residual.shape(), "the result", shape);

  // y = activation(z) + residual,  z = x W^T + b
  const Activation activation = inputs.activation;
  const Tensor y = context.tensor(shape, x.dtype());  // [tokens, out]
  const bool differentiates = context.gradient_mode() == GradientMode::on && activation != Activation::none;
  const Tensor z = differentiates ? context.tensor(shape, x.dtype()) : Tensor();  // [tokens, out]
  GemmArgs args = forward_gemm(weight, x, y);
  if (inputs.bias) args.bias = inputs.bias.value().view();
  args.activation = activation;
  if (z) args.saved_input = z.view();
  if (inputs.residual) args.residual = inputs.residual.value().view();
  launch_gemm(context, args);

  // dz = dy activation'(z);  dW = dz^T x;  db = sum(dz);  dx = dz W;  dresidual = dy
  return make_variable(context, y, "linear", {inputs.x, inputs.weight, inputs.bias, inputs.residual},
                       [x, weight, z, activation](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
                         GradientSlot &dx = slots[0], &dweight = slots[1], &dbias = slots[2], &dresidual = slots[3];
                         Tensor dz = dy;  // [tokens, out]
                         if (activation != Activation::none) {
                           if (dresidual.needed()) dz = ctx.tensor(dy.shape(), dy.dtype());
                           ctx.launch(ActivationBackwardArgs{.x = z.view(), .dy = dy.view(), .dx = dz.view(), .activation = activation});
                         }
                         launch_wgrad(ctx, x, dz, dweight, dbias);
                         launch_dgrad(ctx, weight, dz, dx);
                         if (dresidual.needed()) dresidual.adopt(ctx, dy);
                       });
}

}  // namespace tilewave

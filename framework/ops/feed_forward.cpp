// feed_forward: forward and backward, six GEMMs and nothing between them.
#include "framework/ops/feed_forward.h"

#include "framework/ops/gemm_roles.h"

namespace tilewave {

Variable feed_forward(Context& context, const FeedForwardInputs& inputs) {
  const Tensor x = inputs.x.value();               // [tokens, d_model]
  const Tensor up = inputs.up_weight.value();      // [d_ff, d_model]
  const Tensor down = inputs.down_weight.value();  // [d_model, d_ff]
  TW_CHECK(x.cols() == up.cols(), "feed_forward: x has shape ", x.shape(), " and the up weight has shape ", up.shape(),
           "; x's columns must be the weight's.");
  check_same_shape("feed_forward", "the down weight", down.shape(), "the up weight transposed", {up.cols(), up.rows()});
  check_same_shape("feed_forward", "the up bias", inputs.up_bias.shape(), "one row of the hidden layer", {1, up.rows()});
  check_same_shape("feed_forward", "the down bias", inputs.down_bias.shape(), "one row of the result", {1, down.rows()});
  if (inputs.residual) check_same_shape("feed_forward", "the residual", inputs.residual.shape(), "the result", {x.rows(), down.rows()});

  // h = activation(z),  z = x U^T + u.  ReLU's derivative can be read off h itself.
  const Activation activation = inputs.activation;
  const ActivationLayout layout = inputs.hidden_layout;
  const Shape hidden = shape_of(x.rows(), up.rows(), layout);
  const Tensor h = context.tensor(hidden, x.dtype());  // [tokens, d_ff] or [d_ff, tokens]
  const bool saves = context.gradient_mode() == GradientMode::on && activation != Activation::none && activation != Activation::relu;
  const Tensor z = saves ? context.tensor(hidden, x.dtype()) : h;  // like h
  {
    const LayerScope scope(context, "up");
    GemmArgs args = forward_gemm(up, x, {h, layout});
    args.bias = inputs.up_bias.value().view();
    args.activation = activation;
    if (saves) args.saved_input = z.view();
    launch_gemm(context, args);
  }

  // y = h D^T + d + residual
  const Tensor y = context.tensor({x.rows(), down.rows()}, x.dtype());  // [tokens, d_model]
  {
    const LayerScope scope(context, "down");
    GemmArgs args = forward_gemm(down, {h, layout}, y);
    args.bias = inputs.down_bias.value().view();
    if (inputs.residual) args.residual = inputs.residual.value().view();
    launch_gemm(context, args);
  }

  // dD = dy^T h;  dd = sum(dy);  dz = (dy D) activation'(z);  dU = dz^T x;  du = sum(dz);  dx = dz U;  dresidual = dy
  return make_variable(context, y, "feed_forward",
                       {inputs.x, inputs.up_weight, inputs.up_bias, inputs.down_weight, inputs.down_bias, inputs.residual},
                       [x, up, down, h, z, activation, layout](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
                         GradientSlot &dx = slots[0], &dup = slots[1], &dup_bias = slots[2], &ddown = slots[3], &ddown_bias = slots[4],
                                      &dresidual = slots[5];
                         const Tensor dz = ctx.tensor(h.shape(), h.dtype());  // like h
                         {
                           const LayerScope scope(ctx, "down");
                           launch_wgrad(ctx, {h, layout}, dy, ddown, ddown_bias);
                           GemmArgs args = dgrad_gemm(down, dy, {dz, layout});
                           if (activation != Activation::none) args.derivative_of = z.view();
                           args.derivative = activation;
                           launch_gemm(ctx, args);
                         }
                         {
                           const LayerScope scope(ctx, "up");
                           launch_wgrad(ctx, x, {dz, layout}, dup, dup_bias);
                           launch_dgrad(ctx, up, {dz, layout}, dx);
                         }
                         if (dresidual.needed()) dresidual.adopt(ctx, dy);
                       });
}

}  // namespace tilewave

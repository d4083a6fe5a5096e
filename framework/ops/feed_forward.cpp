// feed_forward: forward and backward, six GEMMs and nothing between them but what no epilogue has.
#include "framework/ops/feed_forward.h"

#include "framework/ops/gemm_roles.h"
#include "kernels/ops/silu.h"
#include "kernels/ops/squash.h"

namespace tilewave {
namespace {

// What is saved for the backward pass.
struct Hidden {
  FeedForwardActivation activation = FeedForwardActivation::relu;
  ActivationLayout layout = ActivationLayout::token_major;
  Tensor z, h;  // the activation's input and result; z is h where nobody reads it

  Activations input() const { return {z, layout}; }
  Activations result() const { return {h, layout}; }
};

// Gate and up projection, of z or of its gradient; up is absent where there is no gate.
struct GateAndUp {
  Tensor gate, up;
};
GateAndUp parts_of(const Hidden& hidden, const Tensor& z) {
  if (up_matrices(hidden.activation) == 1) return {.gate = z, .up = {}};
  const bool token_major = hidden.layout == ActivationLayout::token_major;
  const std::int64_t d_ff = (token_major ? z.cols() : z.rows()) / 2;
  return token_major ? GateAndUp{.gate = z.columns(0, d_ff), .up = z.columns(d_ff, d_ff)}
                     : GateAndUp{.gate = z.slice_rows(0, d_ff), .up = z.slice_rows(d_ff, d_ff)};
}

Squash squash_of(FeedForwardActivation activation) { return activation == FeedForwardActivation::sigmoid ? Squash::sigmoid : Squash::tanh; }

void check_shapes(const FeedForwardInputs& inputs) {
  const Shape x = inputs.x.shape(), up = inputs.up_weight.shape(), down = inputs.down_weight.shape();
  TW_CHECK(x.cols == up.cols, "feed_forward: x has shape ", x, " and the up weight has shape ", up, "; x's columns must be the weight's.");
  const std::int64_t matrices = up_matrices(inputs.activation);
  TW_CHECK(up.rows % matrices == 0, "feed_forward: the up weight has shape ", up,
           "; its rows are the gate's and then as many of the up projection.");
  check_same_shape("feed_forward", "the down weight", down, "the up weight transposed", {up.cols, up.rows / matrices});
  if (inputs.up_bias) check_same_shape("feed_forward", "the up bias", inputs.up_bias.shape(), "one row of the hidden layer", {1, up.rows});
  if (inputs.down_bias)
    check_same_shape("feed_forward", "the down bias", inputs.down_bias.shape(), "one row of the result", {1, down.rows});
  if (inputs.residual) check_same_shape("feed_forward", "the residual", inputs.residual.shape(), "the result", {x.rows, down.rows});
}

// What no epilogue has: h = activation(z), h in z's place where it squashes.
void launch_activation(Context& context, const Hidden& hidden) {
  if (squashes(hidden.activation)) {
    return context.launch(SquashArgs{.x = hidden.z.view(), .y = hidden.h.view(), .kind = squash_of(hidden.activation)});
  }
  const GateAndUp parts = parts_of(hidden, hidden.z);
  context.launch(SiluArgs{.x = parts.gate.view(), .up = parts.up.view(), .y = hidden.h.view()});
}

// h = activation(z),  z = x U^T + u.  The derivatives of ReLU, sigmoid and tanh can be read off h itself.
Hidden launch_up(Context& context, const FeedForwardInputs& inputs) {
  const LayerScope scope(context, "up");
  const Tensor x = inputs.x.value(), up = inputs.up_weight.value();  // [tokens, d_model], [d_ff or 2 d_ff, d_model]
  const FeedForwardActivation activation = inputs.activation;
  Hidden hidden{.activation = activation, .layout = inputs.hidden_layout, .z = {}, .h = {}};
  const auto tensor = [&](std::int64_t features) {
    return context.tensor(shape_of(x.rows(), features, hidden.layout), x.dtype());  // [tokens, features] or [features, tokens]
  };
  hidden.h = tensor(up.rows() / up_matrices(activation));
  const Activation epilogue = epilogue_of(activation);
  const bool saves = context.gradient_mode() == GradientMode::on && epilogue != Activation::none && epilogue != Activation::relu;
  hidden.z = saves || (has_launch(activation) && !squashes(activation)) ? tensor(up.rows()) : hidden.h;
  GemmArgs args = forward_gemm(up, x, has_launch(activation) ? hidden.input() : hidden.result());
  if (inputs.up_bias) args.bias = inputs.up_bias.value().view();
  args.activation = epilogue;
  if (saves) args.saved_input = hidden.z.view();
  launch_gemm(context, args);
  if (has_launch(activation)) launch_activation(context, hidden);
  return hidden;
}

// dz = (dy D) activation'(z)
Tensor launch_down_dgrad(Context& context, const Tensor& down, const Tensor& dy, const Hidden& hidden) {
  const Tensor dh = context.tensor(hidden.h.shape(), hidden.h.dtype());  // like h
  GemmArgs args = dgrad_gemm(down, dy, {dh, hidden.layout});
  args.derivative = epilogue_of(hidden.activation);
  if (args.derivative != Activation::none) args.derivative_of = hidden.z.view();
  launch_gemm(context, args);
  if (!has_launch(hidden.activation)) return dh;
  if (squashes(hidden.activation)) {
    context.launch(SquashBackwardArgs{.y = hidden.h.view(), .dy = dh.view(), .dx = dh.view(), .kind = squash_of(hidden.activation)});
    return dh;
  }
  const Tensor dz = up_matrices(hidden.activation) == 1 ? dh : context.tensor(hidden.z.shape(), hidden.z.dtype());  // like z
  const GateAndUp parts = parts_of(hidden, hidden.z), gradients = parts_of(hidden, dz);
  context.launch(SiluBackwardArgs{
      .x = parts.gate.view(), .up = parts.up.view(), .dy = dh.view(), .dx = gradients.gate.view(), .dup = gradients.up.view()});
  return dz;
}

}  // namespace

Variable feed_forward(Context& context, const FeedForwardInputs& inputs) {
  check_shapes(inputs);
  const Tensor x = inputs.x.value();               // [tokens, d_model]
  const Tensor up = inputs.up_weight.value();      // [d_ff or 2 d_ff, d_model]
  const Tensor down = inputs.down_weight.value();  // [d_model, d_ff]
  const Hidden hidden = launch_up(context, inputs);

  // y = h D^T + d + residual
  const Tensor y = context.tensor({x.rows(), down.rows()}, x.dtype());  // [tokens, d_model]
  {
    const LayerScope scope(context, "down");
    GemmArgs args = forward_gemm(down, hidden.result(), y);
    if (inputs.down_bias) args.bias = inputs.down_bias.value().view();
    if (inputs.residual) args.residual = inputs.residual.value().view();
    launch_gemm(context, args);
  }

  // dD = dy^T h;  dd = sum(dy);  dz = (dy D) activation'(z);  dU = dz^T x;  du = sum(dz);  dx = dz U;  dresidual = dy
  return make_variable(context, y, "feed_forward",
                       {inputs.x, inputs.up_weight, inputs.up_bias, inputs.down_weight, inputs.down_bias, inputs.residual},
                       [x, up, down, hidden](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
                         GradientSlot &dx = slots[0], &dup = slots[1], &dup_bias = slots[2], &ddown = slots[3], &ddown_bias = slots[4],
                                      &dresidual = slots[5];
                         Tensor dz;  // like z
                         {
                           const LayerScope scope(ctx, "down");
                           launch_wgrad(ctx, hidden.result(), dy, ddown, ddown_bias);
                           dz = launch_down_dgrad(ctx, down, dy, hidden);
                         }
                         {
                           const LayerScope scope(ctx, "up");
                           launch_wgrad(ctx, x, {dz, hidden.layout}, dup, dup_bias);
                           launch_dgrad(ctx, up, {dz, hidden.layout}, dx);
                         }
                         if (dresidual.needed()) dresidual.adopt(ctx, dy);
                       });
}

}  // namespace tilewave

// layer_norm: forward and backward; the formulas stand in kernels/ops/layer_norm.h.
#include "framework/ops/layer_norm.h"

#include "kernels/ops/fill.h"

namespace tilewave {

Variable layer_norm(Context& context, const LayerNormInputs& inputs) {
  const Tensor x = inputs.x.value();          // [tokens, d]
  const Tensor gamma = inputs.gamma.value();  // [1, d]
  check_same_shape("layer_norm", "gamma", gamma.shape(), "one row of x", {1, x.cols()});
  check_same_shape("layer_norm", "beta", inputs.beta.shape(), "one row of x", {1, x.cols()});

  const Tensor y = context.tensor(x.shape(), x.dtype());  // [tokens, d]
  const DType statistics = context.precision().statistics;
  const Tensor mean = context.tensor({x.rows(), 1}, statistics), rstd = context.tensor({x.rows(), 1}, statistics);
  context.launch(LayerNormArgs{.x = x.view(),
                               .gamma = gamma.view(),
                               .beta = inputs.beta.value().view(),
                               .y = y.view(),
                               .mean = mean.view(),
                               .rstd = rstd.view(),
                               .epsilon = inputs.epsilon});

  return make_variable(context, y, "layer_norm", {inputs.x, inputs.gamma, inputs.beta},
                       [x, gamma, mean, rstd](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
                         // The three gradients come from one pass: one that is not needed is written aside.
                         const auto open = [&](GradientSlot& slot, Shape shape, DType dtype) {
                           return slot.needed() ? slot.open(ctx) : GradientSlot::Target{.gradient = ctx.tensor(shape, dtype)};
                         };
                         const DType parameters = ctx.precision().gradient;
                         const GradientSlot::Target dx = open(slots[0], x.shape(), dy.dtype());
                         const GradientSlot::Target dgamma = open(slots[1], gamma.shape(), parameters);
                         const GradientSlot::Target dbeta = open(slots[2], gamma.shape(), parameters);
                         if (dgamma.accumulate != dbeta.accumulate) {  // one of them is used elsewhere too
                           const GradientSlot::Target& fresh = dgamma.accumulate ? dbeta : dgamma;
                           ctx.launch(FillArgs{.y = fresh.view(), .value = 0.0});
                         }
                         const Tensor partial = ctx.tensor({layer_norm_partial_rows(x.rows()), x.cols()}, ctx.precision().statistics);
                         ctx.launch(LayerNormBackwardArgs{.x = x.view(),
                                                          .gamma = gamma.view(),
                                                          .mean = mean.view(),
                                                          .rstd = rstd.view(),
                                                          .dy = dy.view(),
                                                          .dx = dx.view(),
                                                          .accumulate = dx.accumulate,
                                                          .dgamma = dgamma.view(),
                                                          .dbeta = dbeta.view(),
                                                          .accumulate_parameters = dgamma.accumulate || dbeta.accumulate,
                                                          .partial = partial.view()});
                       });
}

}  // namespace tilewave

// batch_norm: forward and backward.
#include "framework/ops/batch_norm.h"

namespace tilewave {
namespace {

// What both passes need besides their operands.
struct SavedBatchNorm {
  Tensor x, gamma, mean, rstd;
  ImageLayout layout = ImageLayout::nhwc;
  BatchNormMode mode = BatchNormMode::training;
  BatchNormPasses passes = BatchNormPasses::one;
};

Tensor partial_of(Context& context, const SavedBatchNorm& saved) {
  const std::int64_t channels = saved.gamma.cols();
  return context.tensor({batch_norm_partial_rows(saved.x.rows(), saved.x.cols(), channels, saved.layout), channels},
                        context.precision().statistics);
}

GradientSlot::Target opened(Context& context, GradientSlot& slot, Shape shape, DType dtype) {
  return slot.needed() ? slot.open(context) : GradientSlot::Target{.gradient = context.tensor(shape, dtype)};
}

}  // namespace

Variable batch_norm(Context& context, const BatchNormInputs& inputs) {
  const Tensor x = inputs.x.value();  // [N H W, C] or [N C, H W]
  const Shape parameter = inputs.gamma.shape();
  check_same_shape("batch_norm", "beta", inputs.beta.shape(), "gamma", parameter);
  const DType statistics = context.precision().statistics;
  SavedBatchNorm saved{.x = x,
                       .gamma = inputs.gamma.value(),
                       .mean = context.tensor(parameter, statistics),  // [1, C]
                       .rstd = context.tensor(parameter, statistics),  // [1, C]
                       .layout = inputs.layout,
                       .mode = inputs.mode,
                       .passes = inputs.passes};
  const Tensor y = context.tensor(x.shape(), x.dtype());  // like x
  TW_CHECK(parameter.rows == 1 && parameter.cols > 0, "batch_norm: gamma has shape ", parameter,
           "; it must be one row, a column a channel.");
  const bool training = inputs.mode == BatchNormMode::training;
  const Tensor partial = training ? partial_of(context, saved) : Tensor();
  context.launch(BatchNormArgs{.x = x.view(),
                               .gamma = saved.gamma.view(),
                               .beta = inputs.beta.value().view(),
                               .y = y.view(),
                               .mean = saved.mean.view(),
                               .rstd = saved.rstd.view(),
                               .running_mean = inputs.running_mean.view(),
                               .running_variance = inputs.running_variance.view(),
                               .momentum = inputs.momentum,
                               .epsilon = inputs.epsilon,
                               .layout = inputs.layout,
                               .mode = inputs.mode,
                               .passes = inputs.passes,
                               .partial = partial.view()});

  // All three gradients come from one call: one that is not needed is written aside.
  return make_variable(context, y, "batch_norm", {inputs.x, inputs.gamma, inputs.beta},
                       [saved](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
                         const DType type = ctx.precision().gradient;
                         const GradientSlot::Target dx = opened(ctx, slots[0], saved.x.shape(), saved.x.dtype()),
                                                    dgamma = opened(ctx, slots[1], saved.gamma.shape(), type),
                                                    dbeta = opened(ctx, slots[2], saved.gamma.shape(), type);
                         const Tensor sums = partial_of(ctx, saved);
                         ctx.launch(BatchNormBackwardArgs{.x = saved.x.view(),
                                                          .gamma = saved.gamma.view(),
                                                          .mean = saved.mean.view(),
                                                          .rstd = saved.rstd.view(),
                                                          .dy = dy.view(),
                                                          .dx = dx.view(),
                                                          .accumulate = dx.accumulate,
                                                          .dgamma = dgamma.view(),
                                                          .dbeta = dbeta.view(),
                                                          .accumulate_gamma = dgamma.accumulate,
                                                          .accumulate_beta = dbeta.accumulate,
                                                          .layout = saved.layout,
                                                          .mode = saved.mode,
                                                          .passes = saved.passes,
                                                          .partial = sums.view()});
                       });
}

}  // namespace tilewave

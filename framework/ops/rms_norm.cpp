// rms_norm and query_key_norm: forward and backward, one launch a part that is normalised.
#include "framework/ops/rms_norm.h"

#include "kernels/ops/add.h"
#include "kernels/ops/rms_norm.h"

namespace tilewave {
namespace {

// Columns that one weight normalises, in groups of its width.
struct NormedColumns {
  Tensor x, gamma, rstd;
};

NormedColumns launch_rms_norm(Context& context, const Tensor& x, const Tensor& gamma, const Tensor& y, double epsilon) {
  const Tensor rstd = context.tensor({x.rows(), x.cols() / gamma.cols()}, context.precision().statistics);  // [tokens, groups]
  context.launch(RmsNormArgs{.x = x.view(), .gamma = gamma.view(), .y = y.view(), .rstd = rstd.view(), .epsilon = epsilon});
  return {.x = x, .gamma = gamma, .rstd = rstd};
}

// Both gradients come from one call: one that is not needed is written aside.
void launch_rms_norm_backward(Context& context, const NormedColumns& saved, const Tensor& dy, const GradientSlot::Target& dx,
                              GradientSlot& gamma) {
  const PrecisionTable& types = context.precision();
  const GradientSlot::Target dgamma =
      gamma.needed() ? gamma.open(context) : GradientSlot::Target{.gradient = context.tensor(saved.gamma.shape(), types.gradient)};
  const Tensor partial = context.tensor({rms_norm_partial_rows(saved.rstd.shape().elements()), saved.gamma.cols()}, types.statistics);
  context.launch(RmsNormBackwardArgs{.x = saved.x.view(),
                                     .gamma = saved.gamma.view(),
                                     .rstd = saved.rstd.view(),
                                     .dy = dy.view(),
                                     .dx = dx.view(),
                                     .accumulate = dx.accumulate,
                                     .dgamma = dgamma.view(),
                                     .accumulate_gamma = dgamma.accumulate,
                                     .partial = partial.view()});
}

}  // namespace

Variable rms_norm(Context& context, const RmsNormInputs& inputs) {
  const Tensor x = inputs.x.value();  // [tokens, d]
  check_same_shape("rms_norm", "gamma", inputs.gamma.shape(), "one row of x", {1, x.cols()});
  const Tensor y = context.tensor(x.shape(), x.dtype());  // [tokens, d]
  const NormedColumns saved = launch_rms_norm(context, x, inputs.gamma.value(), y, inputs.epsilon);
  return make_variable(context, y, "rms_norm", {inputs.x, inputs.gamma},
                       [saved](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
                         const GradientSlot::Target dx =
                             slots[0].needed() ? slots[0].open(ctx) : GradientSlot::Target{.gradient = ctx.tensor(dy.shape(), dy.dtype())};
                         launch_rms_norm_backward(ctx, saved, dy, dx, slots[1]);
                       });
}

Variable query_key_norm(Context& context, const QueryKeyNormInputs& inputs) {
  const Tensor x = inputs.x.value();  // [tokens, columns]
  const std::int64_t head_size = (inputs.query_gamma ? inputs.query_gamma : inputs.key_gamma).cols();
  const std::int64_t queries = inputs.heads * head_size, keys = inputs.kv_heads * head_size, values = x.cols() - queries - keys;
  TW_CHECK(values >= 0, "query_key_norm: x has shape ", x.shape(), "; it must hold ", inputs.heads, " heads of queries and ",
           inputs.kv_heads, " of keys, each ", head_size, " columns wide.");
  struct Part {
    NormedColumns saved;
    std::int64_t first = 0;
    std::size_t slot = 0;
  };
  const Tensor y = context.tensor(x.shape(), x.dtype());  // [tokens, columns]
  std::vector<Part> parts;
  const auto normalise = [&](const Variable& gamma, std::int64_t first, std::int64_t count, std::size_t slot) {
    if (count == 0) return;
    check_same_shape("query_key_norm", "a weight", gamma.shape(), "one row of a head", {1, head_size});
    parts.push_back({.saved = launch_rms_norm(context, x.columns(first, count), gamma.value(), y.columns(first, count), inputs.epsilon),
                     .first = first,
                     .slot = slot});
  };
  normalise(inputs.query_gamma, 0, queries, 1);
  normalise(inputs.key_gamma, queries, keys, 2);
  if (values > 0) {
    context.launch(AddArgs{.a = x.columns(queries + keys, values).view(), .b = {}, .y = y.columns(queries + keys, values).view()});
  }

  return make_variable(context, y, "query_key_norm", {inputs.x, inputs.query_gamma, inputs.key_gamma},
                       [parts, values](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
                         const Tensor dx = ctx.tensor(dy.shape(), dy.dtype());  // [tokens, columns]
                         for (const Part& part : parts) {
                           const std::int64_t count = part.saved.x.cols();
                           launch_rms_norm_backward(ctx, part.saved, dy.columns(part.first, count),
                                                    {.gradient = dx.columns(part.first, count)}, slots[part.slot]);
                         }
                         if (values > 0) {
                           const std::int64_t first = dy.cols() - values;
                           ctx.launch(AddArgs{.a = dy.columns(first, values).view(), .b = {}, .y = dx.columns(first, values).view()});
                         }
                         if (slots[0].needed()) slots[0].adopt(ctx, dx);
                       });
}

}  // namespace tilewave

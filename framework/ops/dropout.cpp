// dropout: forward and backward are the same kernel with the same draws.
#include "framework/ops/dropout.h"

#include "framework/ops/add.h"
#include "kernels/ops/dropout.h"

namespace tilewave {

Variable dropout(Context& context, const DropoutInputs& inputs) {
  const double probability = inputs.probability;
  TW_CHECK(probability >= 0.0 && probability < 1.0, "dropout: the probability is ", probability, "; it must be at least 0 and below 1.");
  if (probability == 0.0) return inputs.residual ? add(context, inputs.x, inputs.residual) : inputs.x;
  const Tensor x = inputs.x.value();  // [tokens, d]
  if (inputs.residual) check_same_shape("dropout", "the residual", inputs.residual.shape(), "x", x.shape());

  const std::uint32_t site = context.next_random_site();
  const TokenSide side = context.side();
  const Tensor y = context.tensor(x.shape(), x.dtype());  // [tokens, d]
  context.launch(DropoutArgs{.x = x.view(),
                             .residual = inputs.residual ? ConstMatrixView(inputs.residual.value().view()) : ConstMatrixView(),
                             .y = y.view(),
                             .probability = probability,
                             .site = site,
                             .side = side,
                             .state = context.step_state()});

  // dx = keep dy / (1 - p);  dresidual = dy
  return make_variable(context, y, "dropout", {inputs.x, inputs.residual},
                       [probability, site, side](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
                         GradientSlot &dx = slots[0], &dresidual = slots[1];
                         if (dx.needed()) {
                           const GradientSlot::Target target = dx.open(ctx);
                           ctx.launch(DropoutArgs{.x = dy.view(),
                                                  .residual = target.accumulate ? ConstMatrixView(target.view()) : ConstMatrixView(),
                                                  .y = target.view(),
                                                  .probability = probability,
                                                  .site = site,
                                                  .side = side,
                                                  .state = ctx.step_state()});
                         }
                         if (dresidual.needed()) dresidual.adopt(ctx, dy);
                       });
}

}  // namespace tilewave

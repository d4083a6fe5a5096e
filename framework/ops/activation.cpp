// activation: forward and backward.
#include "framework/ops/activation.h"

#include "kernels/ops/activation.h"

namespace tilewave {

Variable activation(Context& context, const Variable& input, Activation kind) {
  const Tensor x = input.value();                         // [rows, cols]
  const Tensor y = context.tensor(x.shape(), x.dtype());  // [rows, cols]
  context.launch(ActivationArgs{.x = x.view(), .y = y.view(), .activation = kind});

  // dx = dy f'(x)
  return make_variable(context, y, "activation", {input}, [x, kind](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
    const GradientSlot::Target dx = slots[0].open(ctx);
    ctx.launch(ActivationBackwardArgs{.x = x.view(), .dy = dy.view(), .dx = dx.view(), .activation = kind, .accumulate = dx.accumulate});
  });
}

}  // namespace tilewave

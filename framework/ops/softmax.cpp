// softmax: forward and backward.
#include "framework/ops/softmax.h"

#include "kernels/ops/softmax.h"

namespace tilewave {

Variable softmax(Context& context, const Variable& input) {
  const Tensor x = input.value();                         // [rows, cols]
  const Tensor y = context.tensor(x.shape(), x.dtype());  // [rows, cols]
  context.launch(SoftmaxArgs{.x = x.view(), .y = y.view()});

  // dx = y (dy - sum(dy y))
  return make_variable(context, y, "softmax", {input}, [y](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
    const GradientSlot::Target dx = slots[0].open(ctx);
    ctx.launch(SoftmaxBackwardArgs{.y = y.view(), .dy = dy.view(), .dx = dx.view(), .accumulate = dx.accumulate});
  });
}

}  // namespace tilewave

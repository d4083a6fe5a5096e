// squash: forward and backward.
#include "framework/ops/squash.h"

namespace tilewave {

Variable squash(Context& context, const Variable& input, Squash kind) {
  const Tensor x = input.value();                         // [rows, cols]
  const Tensor y = context.tensor(x.shape(), x.dtype());  // [rows, cols]
  context.launch(SquashArgs{.x = x.view(), .y = y.view(), .kind = kind});

  // dx = dy f'(x), which y tells
  return make_variable(context, y, name_of(kind), {input}, [y, kind](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
    const GradientSlot::Target dx = slots[0].open(ctx);
    ctx.launch(SquashBackwardArgs{.y = y.view(), .dy = dy.view(), .dx = dx.view(), .kind = kind, .accumulate = dx.accumulate});
  });
}

}  // namespace tilewave

// add: forward and backward.
#include "framework/ops/add.h"

#include "kernels/ops/add.h"

namespace tilewave {

Variable add(Context& context, const Variable& a, const Variable& b) {
  check_same_shape("add", "a", a.shape(), "b", b.shape());
  const Tensor y = context.tensor(a.shape(), a.value().dtype());  // [rows, cols]
  context.launch(AddArgs{.a = a.value().view(), .b = b.value().view(), .y = y.view()});

  // da = dy;  db = dy. Only one of them can take dy's memory.
  return make_variable(context, y, "add", {a, b}, [](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
    if (slots[1].needed()) {
      const GradientSlot::Target db = slots[1].open(ctx);
      ctx.launch(AddArgs{.a = dy.view(), .b = db.accumulate ? ConstMatrixView(db.view()) : ConstMatrixView(), .y = db.view()});
    }
    if (slots[0].needed()) slots[0].adopt(ctx, dy);
  });
}

}  // namespace tilewave

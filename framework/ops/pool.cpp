// max_pool and average_pool: forward and backward.
#include "framework/ops/pool.h"

namespace tilewave {
namespace {

Shape shape_of(const Images& images) { return {images.rows(), images.cols()}; }

}  // namespace

Variable max_pool(Context& context, const PoolInputs& inputs) {
  const Tensor x = inputs.x.value();  // like images
  const Images images = inputs.images;
  const PoolWindow window = inputs.window;
  const Shape shape = shape_of(pooled(images, window));
  const Tensor y = context.tensor(shape, x.dtype());  // like pooled images
  const bool kept = context.gradient_mode() == GradientMode::on;
  const Tensor indices = kept ? context.tensor(shape, DType::i32) : Tensor();  // like y
  context.launch(MaxPoolArgs{.x = x.view(), .y = y.view(), .indices = indices.view(), .images = images, .window = window});

  // dx = sum of dy over the windows whose largest it was
  return make_variable(
      context, y, "max_pool", {inputs.x}, [indices, images, window](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
        const GradientSlot::Target dx = slots[0].open(ctx);
        ctx.launch(MaxPoolBackwardArgs{
            .dy = dy.view(), .indices = indices.view(), .dx = dx.view(), .accumulate = dx.accumulate, .images = images, .window = window});
      });
}

Variable average_pool(Context& context, const PoolInputs& inputs) {
  const Tensor x = inputs.x.value();  // like images
  const Images images = inputs.images;
  const PoolWindow window = inputs.window;
  const PadCount count_pad = inputs.count_pad;
  const Tensor y = context.tensor(shape_of(pooled(images, window)), x.dtype());  // like pooled images
  context.launch(AveragePoolArgs{.x = x.view(), .y = y.view(), .images = images, .window = window, .count_pad = count_pad});

  // dx = sum of dy / n over the windows that it is in
  return make_variable(
      context, y, "average_pool", {inputs.x}, [images, window, count_pad](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
        const GradientSlot::Target dx = slots[0].open(ctx);
        ctx.launch(AveragePoolBackwardArgs{
            .dy = dy.view(), .dx = dx.view(), .accumulate = dx.accumulate, .images = images, .window = window, .count_pad = count_pad});
      });
}

}  // namespace tilewave

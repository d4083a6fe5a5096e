#include "framework/measure/convolution_work.h"

#include "framework/ops/convolution_passes.h"
#include "framework/ops/gemm_roles.h"
#include "kernels/core/error.h"
#include "kernels/core/saturating.h"

namespace tilewave {
namespace {

struct ConvolutionTensors {
  Tensor x, weight, y;  // dx, dW, dy where that is what a pass makes or takes
};

void launch(Context& context, const ConvolutionPass& pass, const ConvolutionTensors& tensors) {
  const auto& [x, weight, y] = tensors;
  const ConvolvedImages of{.images = pass.images, .filter = pass.filter};
  switch (pass.role) {
    case GemmRole::forward:
      return launch_gemm(context, forward_gemm(weight, convolution_columns(context, x, of), y));
    case GemmRole::dgrad:
      return launch_convolution_dgrad(context, weight, y, {.gradient = x}, of);
    case GemmRole::wgrad:
      return launch_gemm(context, wgrad_gemm(convolution_columns(context, x, of), y, {.gradient = weight}));
  }
}

std::string sizes_text(std::int64_t down, std::int64_t across) { return down == across ? concat(down) : concat(down, 'x', across); }

}  // namespace

std::string name_of(const ConvolutionPass& pass) {
  const auto& [images, filter, outputs, role] = pass;
  std::string text = concat(images.count, 'x', images.height, 'x', images.width, 'x', images.channels, "->", outputs, ',', filter.height,
                            'x', filter.width);
  if (filter.stride_down * filter.stride_across != 1) text += concat(",stride=", sizes_text(filter.stride_down, filter.stride_across));
  if (filter.padding_down + filter.padding_across != 0) text += concat(",pad=", sizes_text(filter.padding_down, filter.padding_across));
  if (filter.dilation_down * filter.dilation_across != 1) {
    text += concat(",dilation=", sizes_text(filter.dilation_down, filter.dilation_across));
  }
  return text;
}

OperationWork prepare_convolution(Context& context, const ConvolutionPass& pass) {
  const std::string refusal = refuse_convolution(pass.images, pass.filter);
  TW_CHECK(refusal.empty(), "convolution ", name_of(pass), ": ", refusal);
  const PrecisionTable& types = context.precision();
  const std::int64_t products = pass.filter.taps() * pass.images.channels;
  const Images result = pass.result();
  const ConvolutionTensors tensors = {
      .x = random_tensor(context, {pass.images.rows(), pass.images.channels}, types.activation, 1),
      .weight = random_tensor(context, {pass.outputs, products}, pass.role == GemmRole::wgrad ? types.gradient : types.compute, 2),
      .y = random_tensor(context, {result.rows(), pass.outputs}, types.activation, 3)};
  TraceEntry entry{.operation = "convolution"};
  entry.cost.flops = saturating_product(saturating_product(2 * products, result.rows()), pass.outputs);
  for (const Tensor* tensor : {&tensors.x, &tensors.weight, &tensors.y}) {
    entry.cost.bytes += tensor->rows() * tensor->cols() * size_of(tensor->dtype());
  }
  // What a launch allocates lies at the same addresses every time, as within a step.
  const auto recorder = std::make_shared<ArenaRecorder>();
  const auto once = [&context, pass, tensors] {
    context.begin_step();
    launch(context, pass, tensors);
    context.end_step();
  };
  if (context.tracing()) return {.entry = entry, .launch = once};
  context.record_step_memory(recorder);
  once();
  context.record_step_memory(nullptr);
  const ArenaLayout layout = recorder->layout();
  const auto arena = std::make_shared<Arena>(allocate_step_memory(context.queue(), layout.bytes), layout);
  return {.entry = entry, .launch = [&context, once, arena] {
            context.use_arena(arena);
            once();
            context.use_arena(nullptr);
          }};
}

}  // namespace tilewave

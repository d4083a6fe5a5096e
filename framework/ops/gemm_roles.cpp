// Majors of the three roles, once: how activations lie decides them, weights are always [out, in].
#include "framework/ops/gemm_roles.h"

namespace tilewave {

namespace {

// The major of activations whose features are one of the product's dimensions and whose tokens are another.
Major major_of(const Activations& activations, Major features, Major tokens) {
  return activations.layout == ActivationLayout::token_major ? features : tokens;
}

}  // namespace

GemmArgs forward_gemm(const Tensor& weight, const Activations& x, const Activations& y) {
  return {.role = GemmRole::forward,
          .a = weight.view(),
          .a_major = Major::k,
          .b = x.tensor.view(),
          .b_major = major_of(x, Major::k, Major::n),
          .d = y.tensor.view(),
          .d_major = major_of(y, Major::m, Major::n)};
}

GemmArgs dgrad_gemm(const Tensor& weight, const Activations& dy, const Activations& dx) {
  return {.role = GemmRole::dgrad,
          .a = weight.view(),
          .a_major = Major::m,
          .b = dy.tensor.view(),
          .b_major = major_of(dy, Major::k, Major::n),
          .d = dx.tensor.view(),
          .d_major = major_of(dx, Major::m, Major::n)};
}

GemmArgs wgrad_gemm(const Activations& x, const Activations& dy, const GradientSlot::Target& dweight) {
  return {.role = GemmRole::wgrad,
          .a = x.tensor.view(),
          .a_major = major_of(x, Major::m, Major::k),
          .b = dy.tensor.view(),
          .b_major = major_of(dy, Major::n, Major::k),
          .d = dweight.view(),
          .accumulate = dweight.accumulate};
}

void launch_gemm(Context& context, GemmArgs args) {
  args.math = context.precision().math;
  const GemmPlan& plan = context.plan(problem_of(args));
  const std::shared_ptr<void> workspace = plan.workspace_bytes > 0 ? context.workspace(plan.workspace_bytes) : nullptr;
  args.plan = &plan;
  args.workspace = workspace.get();
  context.launch(args);
}

void launch_wgrad(Context& context, const Activations& x, const Activations& dy, GradientSlot& weight, GradientSlot& bias) {
  if (!weight.needed() && !bias.needed()) return;
  TW_CHECK(weight.needed(), "a bias wants a gradient and its weight does not: the sum over tokens rides on the weight's GEMM.");
  GemmArgs args = wgrad_gemm(x, dy, weight.open(context));
  if (bias.needed()) {
    const GradientSlot::Target target = bias.open(context);
    args.bias_gradient = target.view();
    args.accumulate_bias_gradient = target.accumulate;
  }
  launch_gemm(context, args);
}

void launch_dgrad(Context& context, const Tensor& weight, const Activations& dy, GradientSlot& dx) {
  if (!dx.needed()) return;
  const GradientSlot::Target target = dx.open(context);
  GemmArgs args = dgrad_gemm(weight, dy, target.gradient);
  args.accumulate = target.accumulate;
  launch_gemm(context, args);
}

}  // namespace tilewave

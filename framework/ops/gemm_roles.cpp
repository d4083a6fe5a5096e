// Majors of the three roles, once.
#include "framework/ops/gemm_roles.h"

namespace tilewave {

GemmArgs forward_gemm(const Tensor& weight, const Tensor& x, const Tensor& y) {
  return {.role = GemmRole::forward, .a = weight.view(), .a_major = Major::k, .b = x.view(), .b_major = Major::k, .d = y.view()};
}

GemmArgs dgrad_gemm(const Tensor& weight, const Tensor& dy, const GradientSlot::Target& dx) {
  return {.role = GemmRole::dgrad,
          .a = weight.view(),
          .a_major = Major::m,
          .b = dy.view(),
          .b_major = Major::k,
          .d = dx.view(),
          .accumulate = dx.accumulate};
}

GemmArgs wgrad_gemm(const Tensor& x, const Tensor& dy, const GradientSlot::Target& dweight) {
  return {.role = GemmRole::wgrad,
          .a = x.view(),
          .a_major = Major::m,
          .b = dy.view(),
          .b_major = Major::n,
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

void launch_wgrad(Context& context, const Tensor& x, const Tensor& dy, GradientSlot& weight, GradientSlot& bias) {
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

}  // namespace tilewave

// The contract of kernels/gemm/gemm.h, the same for both back ends.
#include "kernels/gemm/gemm.h"

#include <algorithm>

#include "kernels/core/error.h"
#include "kernels/gemm/catalog.h"

namespace tilewave {
namespace {

// Whether two matrices share an element's bytes. Columns of one buffer, side by side at one pitch, do not.
bool overlap(const ConstMatrixView& x, const ConstMatrixView& y) {
  const auto begin = [](const ConstMatrixView& view) { return reinterpret_cast<std::intptr_t>(view.data); };
  const auto pitch = [](const ConstMatrixView& view) { return static_cast<std::intptr_t>(view.ld * size_of(view.dtype)); };
  const auto width = [](const ConstMatrixView& view) { return static_cast<std::intptr_t>(view.cols * size_of(view.dtype)); };
  const auto end = [&](const ConstMatrixView& view) { return begin(view) + (view.rows - 1) * pitch(view) + width(view); };
  if (end(x) <= begin(y) || end(y) <= begin(x)) return false;
  if (pitch(x) != pitch(y)) return true;
  const std::intptr_t distance = ((begin(y) - begin(x)) % pitch(x) + pitch(x)) % pitch(x);
  return distance < width(x) || distance + width(y) > pitch(x);
}

void check_overlap(const GemmArgs& args) {
  const auto check = [&](const char* name, const ConstMatrixView& view) {
    TW_CHECK(!view || !overlap(view, args.d), "gemm ", name_of(args.role), ": ", name,
             " overlaps D; D is written while the others are still read, so give it memory of its own.");
  };
  check("A", args.a);
  check("B", args.b);
  check("the bias", args.bias);
  check("saved_input", args.saved_input);
  check("derivative_of", args.derivative_of);
  check("the bias gradient", args.bias_gradient);
  check("the output sums", args.output_sums);
  const bool in_place = args.residual.data == args.d.data && args.residual.ld == args.d.ld && args.residual.dtype == args.d.dtype;
  if (!in_place) check("the residual", args.residual);
}

}  // namespace

GemmCall check(const GemmArgs& args, const DeviceInfo& device) {
  const GemmProblem problem = problem_of(args);
  TW_CHECK(args.a && args.b && args.d, "gemm ", name_of(args.role), ": A, B and D must have storage.");
  TW_CHECK(args.plan != nullptr, "gemm ", name_of(args.role), ": no plan; choose(problem_of(args), device) makes one.");
  const GemmPlan& plan = *args.plan;
  const std::string name = name_of(plan.composition);
  const GemmKernel* const kernel = find_gemm_kernel(device.backend, plan.composition);
  const bool built = kernel != nullptr && (device.backend == Backend::cpu ? kernel->launch_cpu != nullptr : kernel->launch_cuda != nullptr);
  TW_CHECK(built, "gemm ", name_of(args.role), ": the plan's kernel \"", name, "\" has no ",
           device.backend == Backend::cpu ? "CPU" : "CUDA", " code here.");
  TW_CHECK(std::count(kernel->tiles.begin(), kernel->tiles.end(), plan.tile) == 1 && plan.tiling.slots > 0, "gemm ", name_of(args.role),
           ": the kernel ", name, " has no tile ", plan.tile.m, "x", plan.tile.n, " on ", plan.tiling.slots,
           device.backend == Backend::cpu ? " threads" : " slots", "; choose(problem_of(args), device) makes a plan.");
  const std::string refusal = kernel->refuse(problem, device, {&plan.tile, 1});
  TW_CHECK(refusal.empty(), "gemm ", name_of(args.role), ": the plan's kernel ", name, " does not run this problem: ", refusal);
  GemmPlan planned = kernel->unpredicted_plan(problem, plan.tile, device, plan.split);
  planned.algorithm = plan.algorithm;
  TW_CHECK(plan == planned, "gemm ", name_of(args.role), ": the plan (", name, ", ", plan.tiling.tiles_m, " x ", plan.tiling.tiles_n,
           " tiles, ", plan.workspace_bytes, " bytes of workspace) was chosen for another problem or device than M x N x K = ", problem.m,
           " x ", problem.n, " x ", problem.k, " here; choose one with problem_of(args).");
  TW_CHECK(plan.workspace_bytes == 0 || args.workspace != nullptr, "gemm ", name_of(args.role), ": the plan needs ", plan.workspace_bytes,
           " bytes of workspace and none was given.");
  TW_CHECK(device.backend == Backend::cpu || reinterpret_cast<std::uintptr_t>(args.workspace) % 128 == 0, "gemm ", name_of(args.role),
           ": its workspace begins within 128 bytes.");
  check_overlap(args);
  return {.args = args, .problem = problem, .plan = plan, .kernel = *kernel};
}

}  // namespace tilewave

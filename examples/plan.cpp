// A plan in 100 lines: what a training step of a recipe will cost on a GPU that need not be here.
//   plan RECIPE.toml [GPU]      (GPU: v100, a100, h200, b200, ...; without one, h200)
// The step is traced, not run: every launch is recorded with its shapes and nothing is allocated. Each GEMM comes with the kernel and
// tile that the cost model chooses for it, and with the three effects of the guide that its numbers show.
#include <cstdio>
#include <exception>
#include <string>

#include "kernels/core/device_profiles.h"
#include "kernels/core/error.h"
#include "models/planning/resolve.h"

namespace {

using namespace tilewave;

double percent(double fraction) { return 100.0 * fraction; }

std::string shape_of(const GemmProblem& problem) { return concat(problem.m, 'x', problem.n, 'x', problem.k); }

void print_gemm(const GemmLine& line, double step_s) {
  const GemmPlan& plan = line.plan;
  const PlanWaves waves = waves_of(plan);
  const std::string kernel = name_of(plan);
  std::printf("%3lld x  %-28s %-6s %-18s %-34s %7.1f %5.1f %6.2f %5.1f\n", static_cast<long long>(line.count), line.layer.c_str(),
              std::string(name_of(line.problem.role)).c_str(), shape_of(line.problem).c_str(), kernel.c_str(), 1e6 * plan.predicted_s,
              percent(line.predicted_s() / step_s), waves.waves, percent(waves.efficiency));
}

void print_plan(const Recipe& recipe, const DeviceInfo& gpu) {
  check_plannable(recipe, gpu);
  const ResolvedRecipe resolved = resolve(recipe, {}, gpu);  // a vocabulary is padded, a batch moved, where the recipe asks for it
  for (const Adjustment& adjustment : resolved.adjustments) std::printf("%s: %s\n", adjustment.what.c_str(), adjustment.why.c_str());

  const StepPlan step = plan_step(resolved, gpu);
  std::printf("%s on %s\n\n", recipe.name.c_str(), gpu.name.c_str());
  std::printf("count  %-28s %-6s %-18s %-34s %7s %5s %6s %5s\n", "layer", "role", "M x N x K", "kernel and tile", "us each", "%", "waves",
              "full%");
  for (const GemmLine& line : step.gemms) print_gemm(line, step.predicted_s());

  std::printf("\ncount  %-28s %-25s %7s\n", "layer", "other operation", "us");
  for (const OperationLine& line : step.operations) {
    std::printf("%3lld x  %-28s %-25s %7.1f\n", static_cast<long long>(line.count), line.layer.c_str(), line.operation.c_str(),
                1e6 * line.predicted_s);
  }
  const auto tokens = static_cast<double>(resolved.shapes.target_rows * resolved.recipe.batch.accumulate);
  std::printf("\na step is predicted to take %.2f ms: %.0f target tokens/s, %lld parameters, %.1f GiB of memory\n",
              1e3 * step.predicted_s(), tokens / step.predicted_s(), static_cast<long long>(step.parameters),
              static_cast<double>(step.bytes) / (1 << 30));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: plan RECIPE.toml [GPU]\n");
    return 2;
  }
  try {
    const DeviceInfo& gpu = device_profile(argc > 2 ? argv[2] : "h200").device;
    print_plan(predictable(read_recipe(argv[1])), gpu);
    return 0;
  } catch (const std::exception& error) {  // one sentence: what was wrong, where, what to try
    std::fprintf(stderr, "plan: %s\n", error.what());
    return 1;
  }
}

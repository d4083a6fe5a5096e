// The terms of a plan's prediction, and the one that makes it.
#include "models/planning/launch_limit.h"

#include <algorithm>

#include "kernels/core/device_profiles.h"
#include "kernels/gemm/catalog.h"
#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/guide_tiles.h"

namespace tilewave {
namespace {

constexpr double kMakesIt = 1.0 / 3.0;  // of the prediction
constexpr double kMaxWaste = 4.0 / 3;   // times the products' least time

// The problem in rows that start on 128 bytes, its K a multiple of 16 bytes.
GemmProblem aligned(GemmProblem problem) {
  const std::int64_t elements = kPitchBytes / size_of(problem.operand_dtype);
  for (std::int64_t* const pitch : {&problem.a_pitch, &problem.b_pitch, &problem.d_pitch}) *pitch = round_up(*pitch, elements);
  problem.a_alignment = problem.b_alignment = problem.d_alignment = kPitchBytes;
  problem.k = round_up(problem.k, strict_multiple(problem.operand_dtype));
  return problem;
}

// Of rows from 16 bytes on nobody says that alignment limits them.
double cost_of_alignment(const GemmProblem& problem, const GemmPlan& plan, const DeviceInfo& device) {
  constexpr std::int64_t kWanted = 16;  // bytes
  const std::int64_t of_k = alignment_of(0, problem.k * size_of(problem.operand_dtype));
  const bool wanted = std::min({problem.a_alignment, problem.b_alignment, problem.d_alignment, of_k}) >= kWanted;
  return wanted ? 1.0 : times_of_alignment(problem, plan, device);
}

}  // namespace

double times_of_alignment(const GemmProblem& problem, const GemmPlan& plan, const DeviceInfo& device) {
  const GemmProblem other = aligned(problem);
  if (other == problem) return 1.0;
  const GemmKernel& kernel = kernel_of(device.backend, plan);
  const bool is_forced = choose(problem, device) != plan;
  double seconds = plan.predicted_s;
  if (!is_forced) seconds = choose(other, device).predicted_s;
  if (is_forced && kernel.refuse(other, device, {&plan.tile, 1}).empty())
    seconds = kernel.plan(other, plan.tile, device, plan.split).predicted_s;
  return std::max(1.0, plan.predicted_s / seconds);
}

LaunchTerms launch_terms(const GemmProblem& problem, const GemmPlan& plan, const DeviceInfo& device) {
  const double peak = peak_flops_per_s(device, problem.operand_dtype, problem.math), bandwidth = device.bandwidth_bytes_per_s;
  if (peak <= 0.0 || bandwidth <= 0.0 || plan.predicted_s <= 0.0) return {};
  const DType core_dtype = problem.operand_dtype == DType::f64 ? DType::f64 : DType::f32;  // 16 bits are summed in fp32
  const double cores_peak = peak_flops_per_s(device, core_dtype, MathMode::ieee);
  const bool guides = plan.composition.kernel.starts_with("guide_");
  const std::int64_t blocks = std::min(plan.streams_k ? plan.blocks : plan.items(), device.sm_count);
  const PlanWaves waves = waves_of(plan);
  return {.predicted_s = plan.predicted_s,
          .launch_s = guides ? kGuideLaunchSeconds : cost_model_of(device).launch_s,
          .memory_s = static_cast<double>(problem.bytes()) / bandwidth,
          .math_s = static_cast<double>(problem.flops()) / peak,
          .cuda_cores = kernel_of(device.backend, plan).tensor_cores ? 1.0 : std::max(1.0, peak / cores_peak),
          .alignment = cost_of_alignment(problem, plan, device),
          .tiles = 1.0 / plan.tiling.useful_fraction,
          .waves = waves.waves > 1.0 ? 1.0 / waves.efficiency : 1.0,
          .idle_sms = static_cast<double>(device.sm_count) / static_cast<double>(blocks)};
}

Limit limit_of(const LaunchTerms& terms) {
  if (terms.predicted_s <= 0.0) return Limit::unknown;
  const double waste = terms.cuda_cores * terms.alignment * terms.tiles * terms.waves * terms.idle_sms;
  const double products_s = std::min(terms.math_s * waste, terms.predicted_s);
  const double longest_s = std::max({terms.launch_s, terms.memory_s, products_s});
  if (longest_s < kMakesIt * terms.predicted_s) return Limit::latency;
  if (longest_s == terms.launch_s) return Limit::launch;
  if (longest_s == terms.memory_s) return Limit::memory;
  if (waste <= kMaxWaste) {
    return terms.memory_s > terms.math_s && terms.memory_s >= kMakesIt * terms.predicted_s ? Limit::memory : Limit::math;
  }
  struct Reason {
    Limit limit;
    double times;
  };
  const Reason reasons[] = {{Limit::cuda_cores, terms.cuda_cores},
                            {Limit::alignment, terms.alignment},
                            {Limit::tiles, terms.tiles},
                            {Limit::waves, terms.waves},
                            {Limit::latency, terms.idle_sms}};
  return std::ranges::max_element(reasons, {}, &Reason::times)->limit;
}

}  // namespace tilewave

#include "models/planning/size_effects.h"

#include "kernels/core/error.h"
#include "models/planning/launch_limit.h"

namespace tilewave {

SizeEffects effects_of(std::int64_t size, std::span<const GemmLine> lines, const DeviceInfo& device) {
  TW_CHECK(!lines.empty(), "no GEMM has ", size, " elements as a dimension.");
  double seconds = 0.0, aligned = 0.0, useful = 0.0, in_waves = 0.0;
  for (const GemmLine& line : lines) {
    const double time = line.predicted_s();
    const PlanWaves waves = waves_of(line.plan);
    seconds += time;
    aligned += time / times_of_alignment(line.problem, line.plan, device);
    useful += time * line.plan.tiling.useful_fraction;
    in_waves += time * (waves.waves > 1.0 ? waves.efficiency : 1.0);
  }
  return {.alignment_bytes = alignment_of(0, size * size_of(lines.front().problem.operand_dtype)),
          .alignment_cost = 1.0 - aligned / seconds,
          .useful_fraction = useful / seconds,
          .wave_fraction = in_waves / seconds};
}

}  // namespace tilewave

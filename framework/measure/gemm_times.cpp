// All are finalists.
#include "framework/measure/gemm_times.h"

#include <string>

#include "framework/measure/gemm_scratch.h"

namespace tilewave {

void time_gemms(const Queue& queue, std::vector<PlannedGemm>& group, InterleaveOptions options) {
  GemmScratch scratch(queue);
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < group.size(); ++i) {
    candidates.push_back(scratch.candidate(scratch.pose(group[i].problem), group[i].plan, std::to_string(i)));
  }
  options.finalists = group.size();
  for (const Timing& timing : compare(candidates, {}, options).ours) group[std::stoul(timing.name)].seconds = timing.median_s;
}

}  // namespace tilewave

// Times of planned GEMMs, from launch to launch, as the cost model means them: each on operands of its own that no cache holds, those
// of a group in turns, so that a clock that drifts meets them alike.
#pragma once

#include <vector>

#include "framework/io/planned_gemms.h"
#include "framework/measure/interleave.h"
#include "kernels/core/queue.h"

namespace tilewave {

// Fills in `seconds` of every GEMM of the group. A group's operands are in memory at the same time.
void time_gemms(const Queue& queue, std::vector<PlannedGemm>& group, InterleaveOptions options);

}  // namespace tilewave

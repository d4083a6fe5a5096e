// Holds the contract of kernels/gemm/gemm.h, then hands the launch to the plan's row.
#include "kernels/gemm/gemm.h"

#include "kernels/core/queue.h"
#include "kernels/gemm/catalog.h"

namespace tilewave {

void run(CpuQueue& queue, const GemmArgs& args) {
  // A plan holds for the number of threads that it was made for, whatever the queue has.
  const std::int64_t slots = args.plan != nullptr ? args.plan->tiling.slots : 0;
  const GemmCall call = check(args, {.backend = Backend::cpu, .name = {}, .sm_count = slots, .instruction_set = {}});
  call.kernel.launch_cpu(queue, call);
}

}  // namespace tilewave

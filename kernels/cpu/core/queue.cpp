// The CPU's side of kernels/core/queue.h.
#include "kernels/core/queue.h"

#include "kernels/cpu/core/thread_pool.h"

namespace tilewave {

CpuQueue make_cpu_queue(int threads) {
  return {.threads = std::make_shared<ThreadPool>(threads > 0 ? threads : usable_cpus()), .log = nullptr};
}

int thread_count(const CpuQueue& queue) { return queue.threads->size(); }

}  // namespace tilewave

// The CPU's side of kernels/queue.h.
#include "kernels/queue.h"

#include <algorithm>
#include <sched.h>
#include <thread>

#include "kernels/cpu/thread_pool.h"

namespace tilewave {
namespace {

int usable_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

CpuQueue make_cpu_queue(int threads) {
  return {.threads = std::make_shared<ThreadPool>(threads > 0 ? threads : usable_threads()), .log = nullptr};
}

int thread_count(const CpuQueue& queue) { return queue.threads->size(); }

}  // namespace tilewave

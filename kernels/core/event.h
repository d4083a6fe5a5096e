// A moment in a queue: on a GPU when all that was put before it is done, on a CPU when it is recorded.
#pragma once

#include <chrono>
#include <memory>

#include "kernels/core/queue.h"

namespace tilewave {

struct CudaEvent;  // private to kernels/cuda

class Event {
 public:
  void record(Queue& queue);
  // Waits for both, which must have been recorded in queues of the same device.
  double seconds_since(const Event& earlier) const;
  void wait() const;  // returns at once where nothing was recorded

 private:
  std::shared_ptr<CudaEvent> cuda_;
  std::chrono::steady_clock::time_point time_;
};

// The CUDA back end's own. The event is made where there is none yet.
void record(CudaQueue& queue, std::shared_ptr<CudaEvent>& event);
double seconds_between(const CudaEvent& earlier, const CudaEvent& later);
void wait(const CudaEvent& event);

// Names what is put into a GPU's queue within its lifetime for a profiler that watches the process (an NVTX range in the domain
// "tilewave"); on a CPU nothing happens.
class NamedRange {
 public:
  NamedRange(const Queue& queue, const char* name);
  ~NamedRange();
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;

 private:
  bool open_;
};

void push_cuda_range(const char* name);
void pop_cuda_range();

}  // namespace tilewave

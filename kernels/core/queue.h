// Where work goes, in order: a CPU's threads, a CUDA stream, or a trace that launches nothing. With memory.h, event.h and
// graph.h this is the whole back-end seam. Each operation declares run(CpuQueue&, args) and run(CudaQueue&, args);
// run(Queue&, args) forwards by argument-dependent look-up, so that a forgotten twin is a link error that names the operation.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <variant>

#include "kernels/core/error.h"
#include "kernels/core/trace.h"

namespace tilewave {

class ThreadPool;   // private to kernels/cpu
struct CudaStream;  // private to kernels/cuda

struct CpuQueue {
  std::shared_ptr<ThreadPool> threads;
  Trace* log = nullptr;
};

struct CudaQueue {
  std::shared_ptr<CudaStream> stream;
  Trace* log = nullptr;
};

struct TraceQueue {
  Trace* log = nullptr;
  std::uintptr_t next_address = std::uintptr_t{1} << 40;  // of the next allocation; nothing is mapped there
};

using Queue = std::variant<CpuQueue, CudaQueue, TraceQueue>;

// A queue over `threads` CPU threads, the caller's included; 0 takes as many as the process may use.
CpuQueue make_cpu_queue(int threads = 0);
int thread_count(const CpuQueue& queue);

// A queue of its own on the GPU of that number. Throws Error where it cannot be used (probe_cuda in device.h says why).
CudaQueue make_cuda_queue(int index = 0);
std::shared_ptr<CudaStream> make_cuda_stream(int index);

// Waits until everything in the queue is done. Throws Error where a launch has failed.
void synchronize(Queue& queue);
void synchronize(CudaQueue& queue);

inline Trace*& log_of(Queue& queue) {
  return *std::visit([](auto& q) { return &q.log; }, queue);
}

// Runs one operation on whatever the queue is, and logs it where a log is attached.
template <class Args>
void run(Queue& queue, const Args& args) {
  std::visit(
      [&](auto& q) {
        using Q = std::remove_reference_t<decltype(q)>;
        if (q.log != nullptr) {
          TraceEntry entry = trace_entry(args);
          entry.layer = q.log->layer;
          q.log->entries.push_back(std::move(entry));
        }
        if constexpr (!std::is_same_v<Q, TraceQueue>) run(q, args);
      },
      queue);
}

}  // namespace tilewave

// A CUDA stream that somebody else made, such as PyTorch's current one: launches join what is in it, and the graph that it is captured
// into. The stream's memory is not its own: what a captured launch names must live as long as the graph.
#pragma once

#include <cstdint>

#include "kernels/core/queue.h"

namespace tilewave {

// A queue on a cudaStream_t of the GPU of that number (null: its default stream), which stays its maker's and outlives the queue. Its
// flags are its own: no other queue on the stream has launches beside its.
CudaQueue borrow_cuda_stream(int index, void* stream);

// A number that the capture under way on a cudaStream_t has alone; 0: none is.
std::uint64_t capture_of(void* stream);

// Memory of the current device that no stream's order bounds: it may be had while a stream is captured, and stays until it is given back.
void* allocate_unordered(CudaQueue& queue, std::int64_t bytes);
void release_unordered(CudaQueue& queue, void* data) noexcept;

// Within its lifetime the GPU of that number is this thread's current one; while a stream is captured, this thread may load kernels and
// allocate memory.
class CudaScope {
 public:
  explicit CudaScope(int index);
  ~CudaScope();  // NOLINT(performance-trivially-destructible): of builds without CUDA alone
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;

 private:
  int device_before_ = 0, capture_mode_before_ = 0;
};

}  // namespace tilewave

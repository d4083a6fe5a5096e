// What holds for every queue.
#include "kernels/core/queue.h"

namespace tilewave {

CudaQueue make_cuda_queue(int index) { return {.stream = make_cuda_stream(index), .log = nullptr}; }

void synchronize(Queue& queue) {
  if (auto* cuda = std::get_if<CudaQueue>(&queue)) synchronize(*cuda);
}

}  // namespace tilewave

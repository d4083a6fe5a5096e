// What holds for every queue.
#include "kernels/core/queue.h"

namespace tilewave {

CudaQueue make_cuda_queue(int index) {
  if constexpr (kHasCuda) {
    return {.stream = make_cuda_stream(index), .log = nullptr};
  } else {
    throw_no_cuda();
  }
}

void synchronize(Queue& queue) {
  auto* cuda = std::get_if<CudaQueue>(&queue);
  if (cuda == nullptr) return;
  if constexpr (kHasCuda) {
    synchronize(*cuda);
  } else {
    throw_no_cuda();
  }
}

}  // namespace tilewave

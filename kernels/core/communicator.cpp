// What a stream waits for, by queue.
#include "kernels/core/communicator.h"

namespace tilewave {

void follow(Queue& later, Queue& earlier) {
  auto* const waiting = std::get_if<CudaQueue>(&later);
  auto* const awaited = std::get_if<CudaQueue>(&earlier);
  if (waiting != nullptr && awaited != nullptr) follow(*waiting, *awaited);
}

}  // namespace tilewave

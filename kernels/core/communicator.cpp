// What a stream waits for, by queue.
#include "kernels/core/communicator.h"

namespace tilewave {

void follow(Queue& later, Queue& earlier) {
  auto* const waiting = std::get_if<CudaQueue>(&later);
  auto* const awaited = std::get_if<CudaQueue>(&earlier);
  if (waiting != nullptr && awaited != nullptr) follow(*waiting, *awaited);
}

QueueMark mark_end(Queue& queue) {
  auto* const cuda = std::get_if<CudaQueue>(&queue);
  return cuda != nullptr ? mark_end(*cuda) : QueueMark();
}

void follow(Queue& later, const QueueMark& mark) {
  auto* const waiting = std::get_if<CudaQueue>(&later);
  if (waiting != nullptr && mark.event) follow(*waiting, mark);
}

}  // namespace tilewave

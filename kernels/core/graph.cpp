// Capturing forwards to the GPU's back end; elsewhere the function is the graph.
#include "kernels/core/graph.h"

namespace tilewave {

Graph capture(Queue& queue, std::function<void()> launches) {
  if (auto* cuda = std::get_if<CudaQueue>(&queue)) return capture(*cuda, launches);
  return Graph(std::move(launches));
}

}  // namespace tilewave

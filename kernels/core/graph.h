// A recorded sequence of launches that can be run again: on a GPU a CUDA graph, one launch for all of them. On a CPU there is
// nothing to record and replay calls the function.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "kernels/core/queue.h"

namespace tilewave {

class Graph {
 public:
  explicit Graph(std::function<void()> replay) : replay_(std::move(replay)) {}
  void replay() const { replay_(); }

 private:
  std::function<void()> replay_;
};

// Records what `launches` puts into the queue, without running it on a GPU. The launches must not allocate, copy or wait, and
// every address they were given must outlive the graph.
Graph capture(Queue& queue, std::function<void()> launches);
Graph capture(CudaQueue& queue, const std::function<void()>& launches);

}  // namespace tilewave

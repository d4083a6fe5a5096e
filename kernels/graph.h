// A recorded sequence of launches that can be run again. On a CPU there is nothing to record: replay calls the function.
#pragma once

#include <functional>
#include <utility>

#include "kernels/queue.h"

namespace tilewave {

class Graph {
 public:
  explicit Graph(std::function<void()> launches) : launches_(std::move(launches)) {}
  void replay() { launches_(); }

 private:
  std::function<void()> launches_;
};

inline Graph capture(Queue&, std::function<void()> launches) { return Graph(std::move(launches)); }

}  // namespace tilewave

// Where the C interface's products run: a queue with the workspace and the plans that go with it, kept from call to call.
//   a CPU     one a number of threads and process (a child that was forked has none of its parent's threads)
//   a GPU     one a stream; and of a stream under capture one a capture, whose memory stays, since the graph names it
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "include/tilewave.h"
#include "kernels/core/device.h"
#include "kernels/core/queue.h"
#include "kernels/gemm/plan.h"

namespace tilewave {

class Lane {
 public:
  Lane(Queue queue, DeviceInfo device) : queue_(std::move(queue)), device_(std::move(device)) {}
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Queue& queue() { return queue_; }
  const DeviceInfo& device() const { return device_; }
  // At least so many bytes, on a multiple of 256, the same from call to call; what an earlier one gave stays valid.
  void* workspace(std::int64_t bytes);

 private:
  struct Chunk {
    void* data = nullptr;
    std::int64_t bytes = 0;
  };
  void* allocate_chunk(std::int64_t bytes);

  Queue queue_;
  DeviceInfo device_;
  std::vector<Chunk> chunks_;  // the last is the largest
};

// Calls `work` with the place's lane, one thread at a time, the place's GPU being the current one.
void with_lane(const tw_place& place, const std::function<void(Lane&)>& work);

// The plan for a problem on the lane's device, chosen once; valid until the next call. Within with_lane.
const GemmPlan& plan_on(const Lane& lane, const GemmProblem& problem, const std::string& kernel);

}  // namespace tilewave

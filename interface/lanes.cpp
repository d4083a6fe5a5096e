#include "interface/lanes.h"

#include <algorithm>
#include <mutex>
#include <tuple>
#include <unistd.h>

#include "framework/measure/calibration.h"
#include "kernels/core/borrowed_stream.h"
#include "kernels/core/memory.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {
namespace {

constexpr std::int64_t kChunkBytes = std::int64_t{1} << 22;  // the least that is asked for
constexpr std::size_t kMaxPlans = 1 << 14;                   // of problems whose sizes differ at every call

// A CPU's process and threads; a GPU's number, stream and capture.
using LaneKey = std::tuple<std::int32_t, std::int64_t, const void*, std::uint64_t>;
using PlanKey = std::tuple<std::int32_t, std::int64_t, std::string, GemmProblem>;

struct Lanes {
  std::mutex mutex;
  std::map<LaneKey, std::unique_ptr<Lane>> lanes;
  std::map<int, DeviceInfo> gpus;  // by number, as calibrated
  std::map<PlanKey, GemmPlan> plans;
};

// Never destroyed: when a process ends, a driver may be gone before what would be given back to it.
Lanes& all() {
  static auto* const lanes = new Lanes;
  return *lanes;
}

const DeviceInfo& gpu_of(Lanes& lanes, int index) {
  const auto known = lanes.gpus.find(index);
  if (known != lanes.gpus.end()) return known->second;
  const CudaDevices devices = probe_cuda();
  for (DeviceInfo device : devices.usable) {
    if (device.index != index) continue;
    (void)use_calibration(device);
    return lanes.gpus.emplace(index, std::move(device)).first->second;
  }
  throw Error(devices.refused.empty() ? concat("there is no GPU number ", index, " that tilewave can use.") : devices.refused);
}

Lane& lane_of(Lanes& lanes, const tw_place& place) {
  const bool gpu = place.backend == TW_CUDA;
  const LaneKey key = gpu ? LaneKey{TW_CUDA, place.index, place.stream, capture_of(place.stream)}
                          : LaneKey{TW_CPU, place.threads, nullptr, static_cast<std::uint64_t>(getpid())};
  std::unique_ptr<Lane>& lane = lanes.lanes[key];
  if (lane == nullptr) {
    lane = gpu ? std::make_unique<Lane>(borrow_cuda_stream(place.index, place.stream), gpu_of(lanes, place.index))
               : std::make_unique<Lane>(make_cpu_queue(place.threads), probe_cpu(place.threads));
  }
  return *lane;
}

}  // namespace

Lane::~Lane() {
  for (const Chunk& chunk : chunks_) {
    if (auto* const gpu = std::get_if<CudaQueue>(&queue_)) {
      release_unordered(*gpu, chunk.data);
    } else {
      release(queue_, chunk.data);
    }
  }
}

void* Lane::allocate_chunk(std::int64_t bytes) {
  if (auto* const gpu = std::get_if<CudaQueue>(&queue_)) return allocate_unordered(*gpu, bytes);
  return allocate(queue_, bytes);
}

void* Lane::workspace(std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  const std::int64_t largest = chunks_.empty() ? 0 : chunks_.back().bytes;
  if (bytes > largest) {
    const std::int64_t wanted = round_up(std::max({bytes, 2 * largest, kChunkBytes}), kAlignment);
    chunks_.reserve(chunks_.size() + 1);
    chunks_.push_back({.data = allocate_chunk(wanted), .bytes = wanted});
  }
  return chunks_.back().data;
}

void with_lane(const tw_place& place, const std::function<void(Lane&)>& work) {
  TW_CHECK_INPUT(place.backend == TW_CPU || place.backend == TW_CUDA, "place.backend is ", place.backend, "; it is TW_CPU or TW_CUDA.");
  TW_CHECK_INPUT(place.threads >= 0 && place.threads <= 4096 && place.index >= 0, "place names ", place.threads, " threads and GPU number ",
                 place.index, "; neither is negative, and there are at most 4096 threads.");
  Lanes& lanes = all();
  const std::lock_guard lock(lanes.mutex);
  std::optional<CudaScope> scope;
  if (place.backend == TW_CUDA) {
    (void)gpu_of(lanes, place.index);  // or the reason why there is none
    scope.emplace(place.index);
  }
  work(lane_of(lanes, place));
}

const GemmPlan& plan_on(const Lane& lane, const GemmProblem& problem, const std::string& kernel) {
  Lanes& lanes = all();
  const DeviceInfo& device = lane.device();
  const bool gpu = device.backend == Backend::cuda;
  PlanKey key{gpu ? TW_CUDA : TW_CPU, gpu ? device.index : device.sm_count, kernel, problem};
  const auto known = lanes.plans.find(key);
  if (known != lanes.plans.end()) return known->second;
  if (lanes.plans.size() >= kMaxPlans) lanes.plans.clear();
  return lanes.plans.emplace(std::move(key), choose(problem, device, {.forced = kernel})).first->second;
}

}  // namespace tilewave

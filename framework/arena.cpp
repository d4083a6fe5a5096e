// Layout by decreasing size: each interval takes the lowest gap between the already placed ones that are alive with it. What lies on
// either side of a moment when nothing is alive, as between the passes of an accumulated step, is laid out by itself.
#include "framework/arena.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/error.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

std::size_t ArenaRecorder::allocate(std::int64_t bytes) {
  intervals_.push_back({.bytes = round_up(std::max<std::int64_t>(bytes, 1), kAlignment), .birth = clock_++});
  return intervals_.size() - 1;
}

void ArenaRecorder::release(std::size_t allocation) { intervals_[allocation].death = clock_++; }

ArenaLayout ArenaRecorder::layout() const {
  ArenaLayout layout{.sizes = {}, .offsets = std::vector<std::int64_t>(intervals_.size()), .bytes = 0};
  for (const Interval& interval : intervals_) layout.sizes.push_back(interval.bytes);
  for (std::size_t begin = 0, end = 0; begin < intervals_.size(); begin = end) {
    std::int64_t last_death = intervals_[begin].death;
    for (end = begin + 1; end < intervals_.size() && intervals_[end].birth < last_death; ++end) {
      last_death = std::max(last_death, intervals_[end].death);
    }
    place(begin, end, layout);
  }
  return layout;
}

void ArenaRecorder::place(std::size_t begin, std::size_t end, ArenaLayout& layout) const {
  std::vector<std::size_t> by_size(end - begin);
  std::iota(by_size.begin(), by_size.end(), begin);
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) { return layout.sizes[a] > layout.sizes[b]; });

  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t current : by_size) {
    std::int64_t offset = 0;
    for (const std::size_t other : placed) {
      const bool together = intervals_[other].birth < intervals_[current].death && intervals_[current].birth < intervals_[other].death;
      if (!together) continue;
      if (layout.offsets[other] >= offset + layout.sizes[current]) break;
      offset = std::max(offset, layout.offsets[other] + layout.sizes[other]);
    }
    layout.offsets[current] = offset;
    layout.bytes = std::max(layout.bytes, offset + layout.sizes[current]);
    const auto position = std::upper_bound(placed.begin(), placed.end(), offset,
                                           [&](std::int64_t value, std::size_t other) { return value < layout.offsets[other]; });
    placed.insert(position, current);
  }
}

StepMemory allocate_step_memory(Queue& queue, std::int64_t bytes) {
  void* const data = allocate(queue, std::max<std::int64_t>(bytes, 1));
  return {.data = {data, [queue](void* block) mutable { release(queue, block); }}, .bytes = bytes};
}

Arena::Arena(StepMemory memory, ArenaLayout layout) : memory_(std::move(memory)), layout_(std::move(layout)) {
  TW_CHECK(layout_.bytes <= memory_.bytes, "step memory of ", memory_.bytes, " bytes is smaller than the layout's ", layout_.bytes, ".");
}

void* Arena::allocate(std::int64_t bytes) {
  const std::int64_t rounded = round_up(std::max<std::int64_t>(bytes, 1), kAlignment);
  TW_CHECK(next_ < layout_.sizes.size() && layout_.sizes[next_] == rounded, "allocation ", next_, " of this step asks for ", rounded,
           " bytes, but the traced step asked for ", next_ < layout_.sizes.size() ? layout_.sizes[next_] : 0,
           ": a step must do the same work every time; trace it again after changing shapes.");
  return static_cast<char*>(memory_.data.get()) + layout_.offsets[next_++];
}

}  // namespace tilewave

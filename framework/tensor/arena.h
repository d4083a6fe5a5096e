// Step memory laid out from a trace by lifetime. Recording: every allocation of a traced step is an interval from its birth to
// its release. layout() gives each interval an offset so that no two alive at once overlap. Replaying: the n-th allocation of
// every later step takes the n-th offset, so a step has the same addresses every time and needs exactly layout.bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/core/memory.h"

namespace tilewave {

struct ArenaLayout {
  std::vector<std::int64_t> sizes;    // of each allocation of a step, in order
  std::vector<std::int64_t> offsets;  // into the arena, multiples of kAlignment
  std::int64_t bytes = 0;             // of the whole arena
};

// Records the lifetimes of one traced step.
class ArenaRecorder {
 public:
  std::size_t allocate(std::int64_t bytes);  // returns the allocation's number
  void release(std::size_t allocation);
  ArenaLayout layout() const;

 private:
  struct Interval {
    std::int64_t bytes = 0;
    std::int64_t birth = 0;
    std::int64_t death = INT64_MAX;  // never, within the step
  };
  // Lays out the allocations [begin, end), which are alive with no others.
  void place(std::size_t begin, std::size_t end, ArenaLayout& layout) const;

  std::vector<Interval> intervals_;  // by birth
  std::int64_t clock_ = 0;
};

// A block of device memory that steps of one queue may share, since nothing in it outlives a step.
struct StepMemory {
  std::shared_ptr<void> data;
  std::int64_t bytes = 0;
};
StepMemory allocate_step_memory(Queue& queue, std::int64_t bytes);

// Hands out the offsets of a layout, step after step, from one block of device memory.
class Arena {
 public:
  // Error where the memory is smaller than the layout.
  Arena(StepMemory memory, ArenaLayout layout);

  void begin_step() { next_ = 0; }
  // Throws where the step asks for something else than the traced one did.
  void* allocate(std::int64_t bytes);
  std::int64_t bytes() const { return layout_.bytes; }

 private:
  StepMemory memory_;
  ArenaLayout layout_;
  std::size_t next_ = 0;
};

}  // namespace tilewave

// Layout by decreasing size: each interval takes the lowest gap between the already placed ones that are alive with it. What lies on
// either side of a moment when nothing is alive is laid out by itself. Of a deep model most intervals are alive with most others, so they
// are not looked at one by one: what is taken is kept as unions of addresses, for stretches of time that halve.
#include "framework/tensor/arena.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "kernels/core/error.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {
namespace {

struct Range {
  std::int64_t begin = 0, end = 0;  // of addresses
};

// A union of addresses.
class Taken {
 public:
  void add(Range range) {
    const auto first = std::ranges::lower_bound(ranges_, range.begin, {}, &Range::end);  // the first to touch it or to lie behind it
    auto last = first;
    for (; last != ranges_.end() && last->begin <= range.end; ++last) {
      range = {.begin = std::min(range.begin, last->begin), .end = std::max(range.end, last->end)};
    }
    if (first == last) {
      ranges_.insert(first, range);
    } else {
      *first = range;
      ranges_.erase(first + 1, last);
    }
  }

  // The lowest address from `offset` on with so many bytes free behind it.
  std::int64_t lowest_gap(std::int64_t offset, std::int64_t bytes) const {
    auto range = std::ranges::upper_bound(ranges_, offset, {}, &Range::end);
    for (; range != ranges_.end() && range->begin < offset + bytes; ++range) offset = range->end;
    return offset;
  }

 private:
  std::vector<Range> ranges_;  // none touches another
};

struct Lifetime {
  std::int64_t birth = 0, death = 0;

  bool holds(const Lifetime& other) const { return birth <= other.birth && other.death <= death; }
  bool meets(const Lifetime& other) const { return birth < other.death && other.birth < death; }
};

// What is taken when: a binary tree over time. A stretch knows what is taken throughout it, and what is taken at any time in it.
class Occupied {
 public:
  explicit Occupied(std::int64_t moments) : moments_(moments), stretches_(2 * std::bit_ceil(static_cast<std::size_t>(moments))) {}

  void add(const Lifetime& lifetime, const Range& range) {
    walk(lifetime, [&](Stretch& stretch, bool throughout) {
      stretch.any_time.add(range);
      if (throughout) stretch.throughout.add(range);
    });
  }

  std::int64_t lowest_gap(const Lifetime& lifetime, std::int64_t bytes) {
    std::vector<const Taken*> taken;
    walk(lifetime, [&](const Stretch& stretch, bool throughout) { taken.push_back(throughout ? &stretch.any_time : &stretch.throughout); });
    std::int64_t offset = 0;
    for (bool moved = true; moved;) {
      const std::int64_t before = offset;
      for (const Taken* one : taken) offset = one->lowest_gap(offset, bytes);
      moved = offset != before;
    }
    return offset;
  }

 private:
  struct Stretch {
    Taken throughout, any_time;
  };

  // visit(stretch, whether the lifetime holds all of it), from the whole time down to stretches that it holds.
  template <class Visit>
  void walk(const Lifetime& lifetime, Visit&& visit) {
    const auto down = [&](const auto& self, std::size_t node, const Lifetime& stretch) -> void {
      if (!stretch.meets(lifetime)) return;
      const bool throughout = lifetime.holds(stretch);
      visit(stretches_[node], throughout);
      if (throughout) return;
      const std::int64_t middle = std::midpoint(stretch.birth, stretch.death);
      self(self, 2 * node, {.birth = stretch.birth, .death = middle});
      self(self, 2 * node + 1, {.birth = middle, .death = stretch.death});
    };
    down(down, 1, {.birth = 0, .death = moments_});
  }

  std::int64_t moments_;
  std::vector<Stretch> stretches_;  // of stretch i the halves are 2 i and 2 i + 1
};

}  // namespace

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

  const std::int64_t from = intervals_[begin].birth;
  std::int64_t to = from;
  for (std::size_t i = begin; i < end; ++i) to = std::max(to, std::min(intervals_[i].death, clock_));
  Occupied occupied(to - from);
  for (const std::size_t current : by_size) {
    const Interval& interval = intervals_[current];
    const Lifetime lifetime{.birth = interval.birth - from, .death = std::min(interval.death, to) - from};
    const std::int64_t offset = occupied.lowest_gap(lifetime, interval.bytes);
    occupied.add(lifetime, {.begin = offset, .end = offset + interval.bytes});
    layout.offsets[current] = offset;
    layout.bytes = std::max(layout.bytes, offset + interval.bytes);
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

// Random numbers on the host whose results are the same everywhere: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom
// number generators", OOPSLA 2014), exact bounded draws (Lemire, "Fast random integer generation in an interval", TOMACS 2019)
// and the shuffle of Fisher and Yates. The standard library's distributions and std::shuffle differ from one implementation to
// the next. A stream is named by its key alone: Random(random_key(seed, epoch, ...)) can be had again at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace tilewave {

// A bijection of 64-bit words whose output bits each depend on every input bit (SplitMix64's finalizer).
constexpr std::uint64_t mix64(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
  return word ^ (word >> 31);
}

inline constexpr std::uint64_t kGolden64 = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio, made odd

// One key of several words, in order.
template <class... Words>
constexpr std::uint64_t random_key(std::uint64_t seed, Words... words) {
  std::uint64_t key = mix64(seed + kGolden64);
  ((key = mix64(key ^ (static_cast<std::uint64_t>(words) + kGolden64))), ...);
  return key;
}

class Random {
 public:
  explicit constexpr Random(std::uint64_t key) : state_(key) {}

  constexpr std::uint64_t next() { return mix64(state_ += kGolden64); }

  // Uniform over 0 .. bound - 1, exactly; bound > 0.
  constexpr std::uint32_t below(std::uint32_t bound) {
    const std::uint32_t surplus = (0u - bound) % bound;  // draws below it would favour the small results
    std::uint64_t product = 0;
    do {
      product = (next() >> 32) * bound;
    } while (static_cast<std::uint32_t>(product) < surplus);
    return static_cast<std::uint32_t>(product >> 32);
  }

 private:
  std::uint64_t state_;
};

template <class T>
constexpr void shuffle(std::span<T> items, Random& random) {
  for (std::size_t left = items.size(); left > 1; --left) {
    std::swap(items[left - 1], items[random.below(static_cast<std::uint32_t>(left))]);
  }
}

}  // namespace tilewave

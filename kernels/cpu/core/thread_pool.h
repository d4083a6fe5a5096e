// Threads that share out the indices of a loop. Each has a share of neighbours, the same one in every loop of as many indices unless
// the loop brings shares of its own, so that it finds in its own caches what it wrote a loop ago; one that is done with its share helps
// the others with theirs.
// The caller works too; idle workers spin for a moment, then sleep. parallel_for returns when every index is done; the first
// exception is rethrown. One loop runs at a time: a second one, of another thread or from within the first, is an Error where threads
// share it out.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

namespace tilewave {

// CPUs this process may use: its affinity mask where there is one.
int usable_cpus();

class ThreadPool {
 public:
  explicit ThreadPool(int threads);  // Error where the system gives fewer
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // fn(index, thread) for every index in [0, count), on at most `threads` threads; thread is below that and below size().
  template <class Fn>
  void parallel_for(std::int64_t count, Fn&& fn, std::int64_t threads = std::numeric_limits<std::int64_t>::max()) {
    if (count <= 0) return;
    if (count == 1 || threads == 1 || workers_.empty()) return alone(count, fn);
    const std::int64_t shares = std::min<std::int64_t>({count, threads, size()});
    run(
        shares, [&](std::int64_t share) { return count * (share + 1) / shares; }, fn);
  }

  // The same for every index in [0, ends.back()): a thread's share ends at its own of `ends`, of which there are at most size().
  template <class Fn>
  void parallel_for(std::span<const std::int64_t> ends, Fn&& fn) {
    if (ends.empty()) return;
    if (ends.size() == 1) return alone(ends.back(), fn);
    run(
        static_cast<std::int64_t>(ends.size()), [&](std::int64_t share) { return ends[static_cast<std::size_t>(share)]; }, fn);
  }

 private:
  using Body = void (*)(void* context, std::int64_t index, int thread);

  struct alignas(64) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };

  template <class Fn>
  static void alone(std::int64_t count, Fn& fn) {
    for (std::int64_t index = 0; index < count; ++index) fn(index, 0);
  }

  template <class EndOf, class Fn>
  void run(std::int64_t shares, const EndOf& end_of, Fn& fn) {
    begin(shares);
    for (std::int64_t share = 0, first = 0; share < shares; ++share) {
      Share& its = shares_[static_cast<std::size_t>(share)];
      its.next.store(first, std::memory_order_relaxed);
      its.end = first = end_of(share);
    }
    auto body = [](void* context, std::int64_t index, int thread) { (*static_cast<std::remove_reference_t<Fn>*>(context))(index, thread); };
    run(body, const_cast<void*>(static_cast<const void*>(&fn)));
  }

  void end();
  void begin(std::int64_t shares);  // Error where a loop runs
  void run(Body body, void* context);
  void work(int thread);
  void drain(int thread);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<bool> stop_{false};
  std::atomic<int> running_{0};
  std::atomic<bool> busy_{false};
  std::vector<Share> shares_;   // one a thread
  std::int64_t shared_by_ = 0;  // threads that take part: the first so many
  Body body_ = nullptr;
  void* context_ = nullptr;
  std::exception_ptr failure_;
};

}  // namespace tilewave

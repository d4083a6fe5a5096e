// Threads that share out the indices of a loop. Each has a share of neighbours, the same one in every loop of as many indices, so
// that it finds in its own caches what it wrote a loop ago; one that is done with its share helps the others with theirs.
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
    if (count == 1 || threads == 1 || workers_.empty()) {
      for (std::int64_t index = 0; index < count; ++index) fn(index, 0);
      return;
    }
    auto body = [](void* context, std::int64_t index, int thread) { (*static_cast<std::remove_reference_t<Fn>*>(context))(index, thread); };
    run(count, std::min<std::int64_t>({count, threads, size()}), body, const_cast<void*>(static_cast<const void*>(&fn)));
  }

 private:
  using Body = void (*)(void* context, std::int64_t index, int thread);

  struct alignas(64) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };

  void end();
  void run(std::int64_t count, std::int64_t shares, Body body, void* context);
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

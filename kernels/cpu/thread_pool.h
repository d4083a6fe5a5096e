// Threads that share out the indices of a loop. The caller works too; idle workers spin for a moment, then sleep.
// parallel_for returns when every index is done; the first exception is rethrown. One loop runs at a time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
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
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // fn(index, thread) for every index in [0, count), handed out in order; thread is in [0, size()).
  template <class Fn>
  void parallel_for(std::int64_t count, Fn&& fn) {
    if (count <= 0) return;
    if (count == 1 || workers_.empty()) {
      for (std::int64_t index = 0; index < count; ++index) fn(index, 0);
      return;
    }
    auto body = [](void* context, std::int64_t index, int thread) { (*static_cast<std::remove_reference_t<Fn>*>(context))(index, thread); };
    run(count, body, const_cast<void*>(static_cast<const void*>(&fn)));
  }

 private:
  using Body = void (*)(void* context, std::int64_t index, int thread);

  void run(std::int64_t count, Body body, void* context);
  void work(int thread);
  void drain(int thread);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<bool> stop_{false};
  std::atomic<int> running_{0};
  std::atomic<std::int64_t> next_{0};
  std::int64_t count_ = 0;
  Body body_ = nullptr;
  void* context_ = nullptr;
  std::exception_ptr failure_;
};

}  // namespace tilewave

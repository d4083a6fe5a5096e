// The pool of kernels/cpu/core/thread_pool.h: a generation number announces a loop, an atomic index hands out each share, a count of
// workers under way tells when it is over.
#include "kernels/cpu/core/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <sched.h>
#include <system_error>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr auto kSpin = std::chrono::microseconds(50);
constexpr int kSpins = 2000;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

int usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

ThreadPool::ThreadPool(int threads) : shares_(static_cast<std::size_t>(std::max(1, threads))) {
  workers_.reserve(shares_.size());
  try {
    for (int thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { work(thread); });
  } catch (const std::system_error& error) {
    end();
    throw Error(concat("only ", size(), " of ", threads, " threads could be started: ", error.code().message(), "; use --threads ", size(),
                       " or fewer."));
  } catch (...) {
    end();
    throw;
  }
}

ThreadPool::~ThreadPool() { end(); }

void ThreadPool::end() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::begin(std::int64_t shares) {
  TW_CHECK(!busy_.exchange(true, std::memory_order_acquire),
           "a loop was begun while another one runs on the same threads; run loops one after another.");
  shared_by_ = shares;
}

void ThreadPool::run(Body body, void* context) {
  body_ = body;
  context_ = context;
  failure_ = nullptr;
  running_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    generation_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  drain(0);
  // A worker that the system has set aside needs this CPU.
  for (int spins = 0; running_.load(std::memory_order_acquire) != 0; ++spins) {
    if (spins < kSpins) {
      relax();
    } else {
      std::this_thread::yield();
    }
  }
  busy_.store(false, std::memory_order_release);
  if (failure_) std::rethrow_exception(failure_);
}

void ThreadPool::drain(int thread) {
  if (thread >= shared_by_) return;
  try {
    for (std::int64_t turn = 0; turn < shared_by_; ++turn) {
      Share& share = shares_[static_cast<std::size_t>((thread + turn) % shared_by_)];
      for (std::int64_t index = share.next.fetch_add(1); index < share.end; index = share.next.fetch_add(1)) body_(context_, index, thread);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    for (std::int64_t share = 0; share < shared_by_; ++share)
      shares_[static_cast<std::size_t>(share)].next.store(shares_[static_cast<std::size_t>(share)].end);
  }
}

void ThreadPool::work(int thread) {
  std::uint64_t seen = 0;
  for (;;) {
    // Spin for a moment: loops of one step follow each other closely.
    const auto until = std::chrono::steady_clock::now() + kSpin;
    while (generation_.load(std::memory_order_acquire) == seen && !stop_ && std::chrono::steady_clock::now() < until) relax();
    if (generation_.load(std::memory_order_acquire) == seen) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || generation_.load(std::memory_order_acquire) != seen; });
    }
    if (stop_) return;
    ++seen;
    drain(thread);
    running_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace tilewave

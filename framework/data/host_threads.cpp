#include "framework/data/host_threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tilewave {

std::int64_t threads_for(std::int64_t work, std::int64_t least_work) {
  const auto most = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  return std::clamp<std::int64_t>(work / least_work, 1, most);
}

void share_out(std::int64_t parts, std::int64_t threads, const std::function<void(std::int64_t)>& part) {
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::int64_t failed = parts;  // the least index that did, so that which one is told of does not depend on the threads
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::int64_t index = next++; index < parts; index = next++) {
      try {
        part(index);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (index < failed) {
          failed = index;
          failure = std::current_exception();
        }
      }
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (std::int64_t thread = 1; thread < std::min(threads, parts); ++thread) others.emplace_back(work);
    } catch (const std::system_error&) {
      // No further thread can be had: those that there are do the rest.
    }
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tilewave

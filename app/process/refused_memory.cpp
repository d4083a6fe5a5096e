// The program's operator new: the language's own, and what it refused is remembered. An address sanitizer keeps its own.
#include "app/process/refused_memory.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> refused{0};

}  // namespace

#if defined(__SANITIZE_ADDRESS__)
#define TILEWAVE_OWN_NEW 0
#elif defined(__has_feature)
#define TILEWAVE_OWN_NEW !__has_feature(address_sanitizer)
#else
#define TILEWAVE_OWN_NEW 1
#endif

#if TILEWAVE_OWN_NEW
void* operator new(std::size_t bytes) {
  void* const data = std::malloc(std::max<std::size_t>(bytes, 1));
  if (data != nullptr) return data;
  refused = bytes;
  throw std::bad_alloc();
}

void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
#endif

namespace tilewave {

std::size_t last_refused_bytes() noexcept { return refused; }

}  // namespace tilewave

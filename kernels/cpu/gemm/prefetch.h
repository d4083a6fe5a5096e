// Asking for memory that will be written.
#pragma once

namespace tilewave {

// Asks for a line as its only owner. Compilers turn a prefetch with intent to write into one without where they have not been told of
// PREFETCHW, which every x86-64 CPU takes, at least for a NOP; the line would be asked for twice where another core wrote it last.
inline void prefetch_to_write(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace tilewave

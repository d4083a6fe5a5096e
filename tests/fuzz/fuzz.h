// What the fuzzers share: bytes as a file in memory, and what a reader owes its user whatever those bytes are: it accepts them, or
// refuses them with an InputError of one printable sentence. Any other exception, and any broken invariant, ends the process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/core/error.h"

namespace tilewave {

inline void must(bool holds, std::string_view what) {
  if (holds) return;
  std::cerr << "broken: " << what << '\n';
  std::abort();
}

// One file for the whole process; each input replaces the former one.
inline std::filesystem::path file_of(const std::uint8_t* data, std::size_t bytes) {
  static const int file = ::memfd_create("fuzz", 0);
  const bool written = ::ftruncate(file, 0) == 0 && ::pwrite(file, data, bytes, 0) == static_cast<ssize_t>(bytes);
  must(written, "a file in memory");
  return "/proc/self/fd/" + std::to_string(file);
}

template <class Read>
void read_or_refuse(Read&& read) {
  try {
    read();
  } catch (const InputError& refusal) {
    const std::string_view sentence = refusal.what();
    const bool printable = std::none_of(sentence.begin(), sentence.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
    must(printable, sentence);
    must(sentence.ends_with('.') || sentence.ends_with('?'), sentence);
    must(sentence.size() < 2000, sentence);
  }
}

}  // namespace tilewave

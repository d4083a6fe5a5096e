// What tests of files share: files of a few bytes, sentences, and a call as an unprivileged user (root passes every check).
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/memory_folder.h"

namespace tilewave {

inline void put(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

inline std::string contents_of(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The sentence of the exception of type Failure that fn throws; empty: it threw none.
template <class Failure, class Fn>
std::string sentence_of(Fn&& fn) {
  try {
    fn();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

// fn's exit code in a child process; a signal is 128 + its number.
inline int in_child(const std::function<int()>& fn) {
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 99;
    try {
      code = fn();
    } catch (...) {
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline int in_unprivileged_child(const std::function<int()>& fn) {
  constexpr unsigned kNobody = 65534;
  return in_child([&] {
    if (::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) return 98;
    return fn();
  });
}

}  // namespace tilewave

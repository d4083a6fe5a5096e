// Fault injection at the seam of system calls: while a Faults lives, the n-th call (counting from 0, of all kinds together) fails,
// or it and all later ones do, or it writes short, or the process dies just before it. The calls are logged by file name.
#pragma once

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

#include "framework/io/system_calls.h"

namespace tilewave {

enum class Fault { once, from_then_on, short_write, death };

class Faults {
 public:
  struct Plan {
    Fault fault = Fault::once;
    int call = std::numeric_limits<int>::max();  // by default none
    int error = EIO;
  };

  explicit Faults(Plan plan) {
    state() = {.plan = plan, .real = system_calls()};
    system_calls() = {
        .open =
            [](const char* path, int flags, mode_t mode) {
              if (fails("open " + name_of(path))) return -1;
              const int descriptor = state().real.open(path, flags, mode);
              state().names[descriptor] = name_of(path);
              return descriptor;
            },
        .write = [](int descriptor, const void* data, std::size_t bytes) -> ssize_t {
          if (fails("write " + state().names[descriptor])) return -1;
          const bool is_short = state().plan.fault == Fault::short_write && state().calls - 1 == state().plan.call;
          return state().real.write(descriptor, data, is_short ? std::max<std::size_t>(1, bytes / 2) : bytes);
        },
        .ftruncate =
            [](int descriptor, off_t bytes) {
              return fails("ftruncate " + state().names[descriptor]) ? -1 : state().real.ftruncate(descriptor, bytes);
            },
        .fsync = [](int descriptor) { return fails("fsync " + state().names[descriptor]) ? -1 : state().real.fsync(descriptor); },
        .close =
            [](int descriptor) {
              const bool failed = fails("close " + state().names[descriptor]);
              const int error = errno;
              const int closed = state().real.close(descriptor);  // a descriptor is gone even where close reports a failure
              errno = error;
              return failed ? -1 : closed;
            },
        .flock = [](int descriptor,
                    int operation) { return fails("flock " + state().names[descriptor]) ? -1 : state().real.flock(descriptor, operation); },
        .rename = [](const char* from,
                     const char* to) { return fails("rename " + name_of(from) + " " + name_of(to)) ? -1 : state().real.rename(from, to); },
        .mkdir = [](const char* path, mode_t mode) { return fails("mkdir " + name_of(path)) ? -1 : state().real.mkdir(path, mode); },
        .unlink = [](const char* path) { return fails("unlink " + name_of(path)) ? -1 : state().real.unlink(path); },
        .rmdir = [](const char* path) { return fails("rmdir " + name_of(path)) ? -1 : state().real.rmdir(path); },
    };
  }
  ~Faults() { system_calls() = state().real; }
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  int calls() const { return state().calls; }
  const std::vector<std::string>& log() const { return state().log; }
  bool struck() const { return state().calls > state().plan.call; }

 private:
  struct State {
    Plan plan;
    SystemCalls real{};
    int calls = 0;
    std::map<int, std::string> names{};
    std::vector<std::string> log{};
  };
  static State& state() {
    static State state;
    return state;
  }
  // Without the process number that temporary files bear.
  static std::string name_of(const std::filesystem::path& path) {
    const std::string name = path.filename().string();
    return name.substr(0, name.find("-" + std::to_string(::getpid())));
  }
  static bool fails(std::string what) {
    State& now = state();
    now.log.push_back(std::move(what));
    const int call = now.calls++;
    const bool here = call == now.plan.call;
    if (here && now.plan.fault == Fault::death) ::_exit(77);
    if ((here && now.plan.fault == Fault::once) || (call >= now.plan.call && now.plan.fault == Fault::from_then_on)) {
      errno = now.plan.error;
      return true;
    }
    return false;
  }
};

}  // namespace tilewave

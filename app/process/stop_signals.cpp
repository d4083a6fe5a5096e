// The handler does what POSIX allows in one: it reads what was prepared for it, writes a line and perhaps ends the process.
#include "app/process/stop_signals.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <forward_list>
#include <unistd.h>

#include "framework/io/file.h"

namespace tilewave {
namespace {

struct Answer {
  FirstSignal first = FirstSignal::is_asked_for;
  std::string line;
};

volatile std::sig_atomic_t stop_signal_caught = 0;
std::atomic<const Answer*> answer{nullptr};
static_assert(std::atomic<const Answer*>::is_always_lock_free, "a signal handler reads it.");

extern "C" void take_signal(int signal) {
  if (stop_signal_caught != 0) _exit(128 + signal);
  stop_signal_caught = signal;
  const int error = errno;
  const Answer* const now = answer.load();
  if (now != nullptr) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, now->line.data(), now->line.size());
    if (now->first == FirstSignal::ends_the_process && !writes_under_way()) _exit(128 + signal);
  }
  errno = error;
}

}  // namespace

void answer_first_signal(FirstSignal first, const std::string& line) {
  static auto& answers = *new std::forward_list<Answer>;  // kept to the end: a handler may be reading the former one
  const std::string_view progress_ends = isatty(STDERR_FILENO) == 1 ? "\n" : "";
  answers.push_front({.first = first, .line = std::string(progress_ends) + line + "\n"});
  answer.store(&answers.front());
}

void catch_stop_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = take_signal;
    sigaction(signal, &action, nullptr);
  }
}

int caught_signal() { return stop_signal_caught; }

}  // namespace tilewave

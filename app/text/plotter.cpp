// Runs plot.py as a process of its own.
#include "app/text/plotter.h"

#include <cerrno>
#include <fcntl.h>
#include <iostream>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tilewave {
namespace {

enum class Speech : std::uint8_t { heard, silent };

std::filesystem::path plotter_path() {
  std::error_code ignored;
  return std::filesystem::canonical("/proc/self/exe", ignored).parent_path().parent_path() / "share/tilewave/plot.py";
}

// 0 where it could not be started.
pid_t start_plotter(const std::filesystem::path& what, Speech speech) {
  const std::string words[] = {"python3", plotter_path().string(), what.string()};
  char* arguments[] = {const_cast<char*>(words[0].c_str()), const_cast<char*>(words[1].c_str()), const_cast<char*>(words[2].c_str()),
                       nullptr};
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) return 0;
  if (speech == Speech::silent) {
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_WRONLY, 0);
  }
  std::cerr.flush();
  pid_t child = 0;
  const bool started = posix_spawnp(&child, "python3", &actions, nullptr, arguments, environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  return started ? child : 0;
}

// Whether the process has ended, well or not; `status` is its own then.
bool has_ended(pid_t child, int options, int& status) {
  pid_t waited = 0;
  while ((waited = waitpid(child, &status, options)) < 0 && errno == EINTR) {
  }
  return waited != 0;
}

}  // namespace

bool draw(const std::filesystem::path& what, const std::string& missing) {
  int status = 0;
  const pid_t child = start_plotter(what, Speech::heard);
  const bool ran = child != 0 && has_ended(child, 0, status);
  if (!ran || status != 0)
    std::cerr << "tilewave: " << missing << " could not be made: python3 " << plotter_path().string()
              << (ran ? " failed.\n" : " did not run.\n");
  return ran && status == 0;
}

void Redrawing::draw(const std::filesystem::path& what) {
  int status = 0;
  if (child_ != 0 && !has_ended(child_, WNOHANG, status)) return;
  child_ = start_plotter(what, Speech::silent);
}

void Redrawing::finish() {
  int status = 0;
  if (child_ != 0) has_ended(child_, 0, status);
  child_ = 0;
}

}  // namespace tilewave

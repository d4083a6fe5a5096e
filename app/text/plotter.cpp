// Runs plot.py as a process of its own.
#include "app/text/plotter.h"

#include <cerrno>
#include <iostream>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tilewave {

bool draw(const std::filesystem::path& what, const std::string& missing) {
  std::error_code ignored;
  const std::filesystem::path plotter =
      std::filesystem::canonical("/proc/self/exe", ignored).parent_path().parent_path() / "share/tilewave/plot.py";
  const std::string words[] = {"python3", plotter.string(), what.string()};
  char* arguments[] = {const_cast<char*>(words[0].c_str()), const_cast<char*>(words[1].c_str()), const_cast<char*>(words[2].c_str()),
                       nullptr};
  pid_t child = 0;
  int status = 0;
  std::cerr.flush();
  const auto ended = [&] {
    pid_t waited = 0;
    while ((waited = waitpid(child, &status, 0)) < 0 && errno == EINTR) {
    }
    return waited == child;
  };
  const bool ran = posix_spawnp(&child, "python3", nullptr, nullptr, arguments, environ) == 0 && ended();
  if (!ran || status != 0)
    std::cerr << "tilewave: " << missing << " could not be made: python3 " << plotter.string() << (ran ? " failed.\n" : " did not run.\n");
  return ran && status == 0;
}

}  // namespace tilewave

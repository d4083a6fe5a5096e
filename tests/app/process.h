// The program under test as a process of its own: started in a folder, signalled, awaited. Its two streams are kept apart, in the
// files stdout and stderr of that folder.
#pragma once

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "tests/app/help_tree.h"
#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {

class Process {
 public:
  // prepare runs in the child just before the program: limits, user, environment, streams of its own.
  Process(
      const std::filesystem::path& folder, std::vector<std::string> words, const std::function<void()>& prepare = [] {})
      : output_(folder / "stdout"), errors_(folder / "stderr") {
    const std::string program = std::filesystem::absolute(test_environment().program).string();
    words_ = words;
    words.insert(words.begin(), program);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int streams[] = {::open("/dev/null", O_RDONLY | O_CLOEXEC), open_new(output_), open_new(errors_)};
    id_ = ::fork();
    if (id_ == 0) {
      for (int stream = 0; stream < 3; ++stream) ::dup2(streams[stream], stream);
      for (const int signal : {SIGHUP, SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);  // whatever the tests were started under
      if (::chdir(folder.c_str()) == 0) {
        prepare();
        ::execv(program.c_str(), arguments.data());
      }
      ::_exit(127);
    }
    for (const int stream : streams) ::close(stream);
    TW_CHECK(id_ > 0, "no process could be made.");
  }
  ~Process() {
    if (id_ <= 0) return;
    send(SIGKILL);
    wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal) const { ::kill(id_, signal); }

  // Sends, and waits until it has been taken: two signals that wait together have no order.
  void deliver(int signal) const {
    send(signal);
    const auto pending = [&] {
      std::ifstream status("/proc/" + std::to_string(id_) + "/status");
      for (std::string line; std::getline(status, line);) {
        if (line.starts_with("ShdPnd:")) return line.find_first_not_of("0 \t", 7) != std::string::npos;
      }
      return false;
    };
    while (pending()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  // Its exit code; minus the signal that ended it. What it says on failing advises no option that its command lacks.
  int wait() {
    int status = 0;
    while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = 0;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    if (code == 1 || code == 2) {
      EXPECT_EQ(advised_but_lacking(words_, errors()), "") << errors();
    }
    return code;
  }

  // False where it ends, or a minute passes, without saying it.
  bool wait_until_said(const std::string& text) const {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (errors().find(text) == std::string::npos) {
      siginfo_t info{};
      const bool ended = ::waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
      if (ended || std::chrono::steady_clock::now() > limit) return errors().find(text) != std::string::npos;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  std::string output() const { return file_text(output_); }
  std::string errors() const { return file_text(errors_); }

 private:
  static int open_new(const std::filesystem::path& path) {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  }

  std::filesystem::path output_, errors_;
  std::vector<std::string> words_;
  pid_t id_ = 0;
};

}  // namespace tilewave

// Processes, their variables, and what becomes of the others when one ends.
#include "app/process/rank_starter.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <netinet/in.h>
#include <optional>
#include <spawn.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "framework/distributed/host_name.h"
#include "kernels/core/error.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it to the program

namespace tilewave {
namespace {

constexpr int kRankFailed = 1, kSignalled = 128;
constexpr std::chrono::seconds kMercy{10};  // between asking a process to end and ending it; for mpirun, behind its last process's end
constexpr std::size_t kMostProcesses = 1024;

// What a signal's handler may look at.
std::array<volatile pid_t, kMostProcesses> processes{};
volatile std::sig_atomic_t passed_on = 0;

void send_all(int signal) {
  for (const volatile pid_t& process : processes) {
    if (process > 0) kill(process, signal);
  }
}

void pass_on(int signal) {
  passed_on = signal;
  send_all(signal);
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

pid_t started(std::vector<std::string> words, std::vector<std::string> variables, const std::string& otherwise) {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    if (std::none_of(variables.begin(), variables.end(), [&](const std::string& own) { return own.starts_with(name); })) {
      variables.emplace_back(text);
    }
  }
  pid_t process = 0;
  const int error = posix_spawnp(&process, words.front().c_str(), nullptr, nullptr, pointers(words).data(), pointers(variables).data());
  TW_CHECK(error == 0, words.front(), " cannot be run here (", std::strerror(error), ")", otherwise);
  return process;
}

void start_by_mpirun(const RankStart& start) {
  std::vector<std::string> words = {"mpirun", "-n", std::to_string(start.count), "--oversubscribe", "--bind-to", "none"};
  if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  words.push_back(own_program());
  words.insert(words.end(), start.arguments.begin(), start.arguments.end());
  processes[0] = started(words, {},
                         concat(", and ", start.count,
                                " ranks on CPUs are started by it; install Open MPI (Debian: openmpi-bin), "
                                "or leave --ranks out."));
}

// Binds to a port of this machine for a moment; 0 lets the system choose. The port, or 0 where somebody has it.
int bound_port(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  socklen_t size = sizeof(address);
  const bool bound = bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(socket);
  return bound ? ntohs(address.sin_port) : 0;
}

// A port that is free, as the one behind it is, where NCCL meets; another process may take them before the ranks do, which they then say.
int free_port() {
  constexpr int kMaxAttempts = 100, kLastPort = 65535;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const int port = bound_port(0);
    if (port > 0 && port < kLastPort && bound_port(port + 1) > 0) return port;
  }
  throw Error("no two neighbouring ports of this machine are free for the ranks to meet at; end what listens at so many.");
}

// One of them has ended or could not be started, and the others cannot go on without it.
void stop_others() {
  const auto running = [] { return std::any_of(processes.begin(), processes.end(), [](pid_t process) { return process > 0; }); };
  const auto reap = [] {
    for (volatile pid_t& process : processes) {
      if (process > 0 && waitpid(process, nullptr, WNOHANG) == process) process = 0;
    }
  };
  send_all(SIGTERM);
  const auto end = std::chrono::steady_clock::now() + kMercy;
  for (; running() && std::chrono::steady_clock::now() < end; reap()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  send_all(SIGKILL);
  for (; running(); reap()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

void start_one_by_one(const RankStart& start) {
  const int port = free_port();
  std::vector<std::string> words = {own_program()};
  words.insert(words.end(), start.arguments.begin(), start.arguments.end());
  for (std::int64_t rank = 0; rank < start.count; ++rank) {
    processes[static_cast<std::size_t>(rank)] =
        started(words,
                {concat("WORLD_SIZE=", start.count), concat("RANK=", rank), concat("LOCAL_WORLD_SIZE=", start.count),
                 concat("LOCAL_RANK=", rank), "MASTER_ADDR=127.0.0.1", concat("MASTER_PORT=", port)},
                ".");
  }
}

// Waits for one of them: its rank (mpirun counts as 0) and how it ended.
struct Ended {
  std::size_t rank = 0;
  int status = 0;
};
Ended wait_for_one() {
  for (;;) {
    Ended ended;
    const pid_t process = waitpid(-1, &ended.status, 0);
    TW_CHECK(process > 0 || errno == EINTR, "the ranks cannot be waited for: ", std::strerror(errno), ".");
    const auto found = std::find(processes.begin(), processes.end(), process);
    if (process <= 0 || found == processes.end()) continue;
    *found = 0;
    ended.rank = static_cast<std::size_t>(found - processes.begin());
    return ended;
  }
}

// Whether a process has children that have not ended, as the system tells; nothing where it does not tell.
std::optional<bool> has_running_children(pid_t parent) {
  std::ifstream list(concat("/proc/", parent, "/task/", parent, "/children"));
  if (!list) return {};
  for (pid_t child = 0; list >> child;) {
    std::ifstream file(concat("/proc/", child, "/stat"));
    std::string text;
    std::getline(file, text);
    const std::size_t state = text.rfind(") ");  // behind the name, which may hold anything
    if (state != std::string::npos && text[state + 2] != 'Z') return true;
  }
  return false;
}

// OpenMPI's mpirun can stand still at its own end where a process was killed while it met the others: it is ended then.
Ended wait_for_mpirun() {
  const pid_t mpirun = processes.front();
  bool has_started = false, is_ended = false;
  auto busy = std::chrono::steady_clock::now();  // it last was
  for (Ended ended;;) {
    const pid_t process = waitpid(mpirun, &ended.status, WNOHANG);
    TW_CHECK(process >= 0 || errno == EINTR, "mpirun cannot be waited for: ", std::strerror(errno), ".");
    if (process == mpirun) {
      processes.front() = 0;
      return ended;
    }
    const auto now = std::chrono::steady_clock::now();
    const std::optional<bool> runs = has_running_children(mpirun);
    has_started = has_started || runs.value_or(false);
    if (runs.value_or(true) || !has_started) {
      busy = now;
    } else if (!is_ended && now - busy > kMercy) {
      std::cerr << "tilewave: all ranks have ended and mpirun stands still; it is ended, and the last checkpoint stands.\n" << std::flush;
      kill(mpirun, SIGKILL);
      is_ended = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

int start_ranks(const RankStart& start) {
  TW_CHECK_INPUT(start.count <= static_cast<std::int64_t>(kMostProcesses), start.count, " ranks are more than the ", kMostProcesses,
                 " that one machine starts; start them with mpirun, srun or torchrun.");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, pass_on);
  try {
    start.on_gpus ? start_one_by_one(start) : start_by_mpirun(start);
  } catch (...) {
    stop_others();
    throw;
  }
  int code = 0;
  for (std::int64_t left = start.on_gpus ? start.count : 1; left > 0; --left) {
    const Ended ended = start.on_gpus ? wait_for_one() : wait_for_mpirun();
    if (WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0) continue;
    code = WIFEXITED(ended.status) ? WEXITSTATUS(ended.status) : kRankFailed;
    if (!WIFEXITED(ended.status) && start.on_gpus) {
      std::cerr << "tilewave: rank " << ended.rank << " of " << start.count << " on " << host_name() << " was ended by signal "
                << WTERMSIG(ended.status) << "; the others are stopped, and the last checkpoint stands.\n";
    }
    if (passed_on == 0) stop_others();
    break;
  }
  while (std::any_of(processes.begin(), processes.end(), [](pid_t process) { return process > 0; })) wait_for_one();
  if (passed_on != 0 && code != 0) return kSignalled + passed_on;
  // mpirun says which process it was, and passes its signal on as a code.
  return code > kSignalled ? kRankFailed : code;
}

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\0', begin);
    words.push_back(text.substr(begin, end - begin));
    begin = end == std::string::npos ? text.size() : end + 1;
  }
  if (!words.empty()) words.erase(words.begin());
  return words;
}

}  // namespace tilewave

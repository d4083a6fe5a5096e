// Its two streams go to files that have no name, so that neither waits for a reader.
#include "app/process/own_output.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <spawn.h>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/core/error.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it to the program

namespace tilewave {
namespace {

using NamelessFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

NamelessFile nameless_file() {
  NamelessFile file(std::tmpfile(), std::fclose);
  TW_CHECK(file, "no temporary file can be made: ", std::strerror(errno), "; free some room, or set TMPDIR.");
  return file;
}

std::string text_of(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 4096> some{};
  for (std::size_t count = 0; (count = std::fread(some.data(), 1, some.size(), file)) > 0;) text.append(some.data(), count);
  return text;
}

// The last line that the program itself said, or the last one at all.
std::string last_sentence(const std::string& errors) {
  constexpr std::string_view kOwn = "tilewave: ";
  const std::size_t own = errors.rfind(kOwn);
  std::string_view rest = errors;
  if (own != std::string::npos) {
    rest = rest.substr(own + kOwn.size());
  } else if (const std::size_t end = rest.find_last_not_of('\n'); end != std::string_view::npos) {
    const std::size_t before = rest.rfind('\n', end);
    rest = rest.substr(before == std::string_view::npos ? 0 : before + 1);
  }
  return std::string(rest.substr(0, rest.find('\n')));
}

}  // namespace

std::string own_output(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {std::filesystem::read_symlink("/proc/self/exe").string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const NamelessFile output = nameless_file(), errors = nameless_file();
  posix_spawn_file_actions_t actions;
  TW_CHECK(posix_spawn_file_actions_init(&actions) == 0, words.front(), " cannot be started once more: no memory is left.");
  posix_spawn_file_actions_adddup2(&actions, fileno(output.get()), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(errors.get()), STDERR_FILENO);
  pid_t process = 0;
  const int failed = posix_spawn(&process, words.front().c_str(), &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  TW_CHECK(failed == 0, words.front(), " cannot be started once more: ", std::strerror(failed), ".");
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text_of(output.get());
  const std::string sentence = last_sentence(text_of(errors.get()));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) throw InputError(sentence);
  throw Error(sentence.empty() ? concat("tilewave ", arguments.front(), " ended without a word.") : sentence);
}

}  // namespace tilewave

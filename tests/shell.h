// What a person does at a prompt, for tests: a folder of one's own, files, commands.
#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/wait.h>

#include "kernels/core/error.h"

namespace tilewave {

// A fresh folder that goes with its scope; its name has a space in it, as people's folders have.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tilewave test XXXXXX").string();
    TW_CHECK(mkdtemp(name.data()) != nullptr, "no temporary folder could be made at ", name, ".");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string file_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  TW_CHECK(stream.good(), "cannot read ", file, ".");
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

inline void write_text(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

inline void write_program(const std::filesystem::path& file, const std::string& text) {
  write_text(file, text);
  std::filesystem::permissions(file, std::filesystem::perms(0755));
}

// One word of a POSIX shell, whatever is in it.
inline std::string quoted(const std::string& word) {
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

struct Outcome {
  int status = 0;      // 128 + signal where one ended it
  std::string output;  // standard output and standard error, as they came
};

// Runs a line of POSIX shell in a folder, with nothing on its standard input.
inline Outcome shell(const std::string& line, const std::filesystem::path& folder) {
  FILE* pipe = popen(("cd " + quoted(folder.string()) + " && { " + line + "\n} 2>&1 </dev/null").c_str(), "r");
  TW_CHECK(pipe != nullptr, "no shell could be started for: ", line);
  Outcome outcome;
  std::array<char, 4096> buffer;
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) outcome.output.append(buffer.data(), count);
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace tilewave

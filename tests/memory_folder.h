// A fresh folder for one test, gone with its scope, in memory where the system offers that: for tests that make a disk wait
// thousands of times. Others may look into it; its name has a space in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>

#include "kernels/core/error.h"

namespace tilewave {

class MemoryFolder {
 public:
  MemoryFolder() {
    const std::filesystem::path memory = "/dev/shm";
    const auto parent = ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
    std::string name = (parent / "tilewave test XXXXXX").string();
    TW_CHECK(::mkdtemp(name.data()) != nullptr, "no temporary folder could be made at ", name, ".");
    path_ = name;
    std::filesystem::permissions(path_, std::filesystem::perms(0755));
  }
  ~MemoryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tilewave

// A file that grows at its end: what is appended is there whole, or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "framework/io/file.h"

namespace tilewave {

class AppendedFile {
 public:
  AppendedFile(std::filesystem::path path, std::int64_t bytes);  // one that is there, so long

  void append(std::string_view text);
  void sync();                                        // what was appended reaches the disk
  bool in_place() const { return name_.in_place(); }  // no longer where the file was removed, renamed or replaced

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
  OpenedName name_;
  std::int64_t bytes_;
};

}  // namespace tilewave

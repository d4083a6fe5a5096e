// A folder of one test's own, gone with it, and the sentence that an InputError says.
#pragma once

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <unistd.h>

#include "kernels/core/error.h"

namespace tilewave {

class Scratch {
 public:
  Scratch() : folder_(std::filesystem::temp_directory_path() / ("tilewave_data_test_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path write(std::string_view name, std::string_view content) const {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
    return path;
  }

 private:
  std::filesystem::path folder_;
};

// What the InputError says that fn throws; empty, and a failed test, where it throws none.
template <class Fn>
std::string input_error(Fn&& fn) {
  try {
    fn();
  } catch (const InputError& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not an InputError: " << error.what();
    return {};
  }
  ADD_FAILURE() << "no error at all";
  return {};
}

inline bool says(std::string_view message, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (message.find(part) == std::string_view::npos) {
      ADD_FAILURE() << "\"" << message << "\" does not say \"" << part << "\"";
      return false;
    }
  }
  return message.ends_with('.');
}

}  // namespace tilewave

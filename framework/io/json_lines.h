// A file of JSON objects, one a line, appended while a run goes on (metrics.jsonl). Each line is handed to the system in one write;
// one that could not be written whole is taken back, and one torn by a stop is dropped on resume, with the lines past the restored
// step; steps that then have no line are counted. Numbers are the shortest text that reads back as the same value, under every locale; NaN
// and infinities are null.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "framework/io/appended_file.h"

namespace tilewave {

// One object; fields stand in the order in which they were added.
class JsonObject {
 public:
  JsonObject& add(std::string_view key, std::string_view value);
  JsonObject& add(std::string_view key, std::same_as<bool> auto value) { return add_literal(key, value ? "true" : "false"); }
  template <class Number>
  requires(std::integral<Number> && !std::same_as<Number, bool>) || std::floating_point<Number> JsonObject& add(std::string_view key,
                                                                                                                Number value) {
    if constexpr (std::floating_point<Number>) {
      if (!std::isfinite(value)) return add_literal(key, "null");
    }
    char digits[64];
    return add_literal(key, {digits, std::to_chars(digits, digits + sizeof digits, value).ptr});
  }

  JsonObject& add(std::string_view key, std::span<const JsonObject> objects);

  std::string text() const { return fields_.empty() ? "{}" : fields_ + "}"; }

 private:
  JsonObject& add_literal(std::string_view key, std::string_view literal);

  std::string fields_;  // "{" and the fields so far
};

inline constexpr std::int64_t kMaxJsonLinesBytes = std::int64_t{1} << 36;  // that are read: more steps than a recipe can ask for

class JsonLines {
 public:
  static JsonLines create(const std::filesystem::path& path);  // empty, whatever was there
  // Keeps the whole lines whose integer "step" is at most last_step.
  static JsonLines resume(const std::filesystem::path& path, std::int64_t last_step);

  void append(const JsonObject& line) { file_.append(line.text() + "\n"); }
  void sync() { file_.sync(); }                       // the lines so far reach the disk
  bool in_place() const { return file_.in_place(); }  // no longer where the file was removed, renamed or replaced
  std::int64_t dropped_lines() const { return dropped_lines_; }

  // Of the steps 1 to last_step, those that resume found no line of.
  struct Missing {
    std::int64_t steps = 0, first = 0;
  };
  Missing missing() const { return missing_; }

 private:
  JsonLines(const std::filesystem::path& path, std::int64_t bytes) : file_(path, bytes) {}

  AppendedFile file_;
  std::int64_t dropped_lines_ = 0;
  Missing missing_;
};

}  // namespace tilewave

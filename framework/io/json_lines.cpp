// A file of JSON objects, one a line.
#include "framework/io/json_lines.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<std::int64_t> step_of(std::string_view line) {
  const auto object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object() || line.find('\0') != std::string_view::npos) return std::nullopt;  // nlohmann's parser stops at a zero byte
  const auto step = object.find("step");
  return step != object.end() && step->is_number_integer() ? std::optional(step->get<std::int64_t>()) : std::nullopt;
}

// Steps between one and the last, in the order of the lines: what comes is later than what came.
struct MissingSteps {
  JsonLines::Missing found;
  std::int64_t expected = 1;

  void meet(std::int64_t step) {
    if (step < expected) return;
    if (step > expected && found.steps == 0) found.first = expected;
    found.steps += step - expected;
    expected = step + 1;
  }
};

}  // namespace

JsonObject& JsonObject::add(std::string_view key, std::string_view value) { return add_literal(key, json_string(value)); }

JsonObject& JsonObject::add(std::string_view key, std::span<const JsonObject> objects) {
  std::string array = "[";
  for (const JsonObject& object : objects) array += (array.size() > 1 ? "," : "") + object.text();
  return add_literal(key, array + "]");
}

JsonObject& JsonObject::add_literal(std::string_view key, std::string_view literal) {
  fields_ += fields_.empty() ? "{" : ", ";
  fields_.append(json_string(key)).append(": ").append(literal);
  return *this;
}

JsonLines JsonLines::create(const std::filesystem::path& path) {
  write_file_atomically(path, "");
  return JsonLines(path, 0);
}

JsonLines JsonLines::resume(const std::filesystem::path& path, std::int64_t last_step) {
  std::error_code ignored;
  const bool there = std::filesystem::exists(path, ignored);
  const std::string before = there ? read_file(path, kMaxJsonLinesBytes) : std::string();
  std::string kept;
  std::int64_t dropped = 0;
  MissingSteps missing;
  for (std::size_t begin = 0; begin < before.size();) {
    const std::size_t end = before.find('\n', begin);
    const bool whole = end != std::string::npos;
    const std::string_view line = std::string_view(before).substr(begin, whole ? end - begin + 1 : std::string::npos);
    const std::optional<std::int64_t> step = whole ? step_of(line) : std::nullopt;
    if (step && *step <= last_step) {
      kept += line;
      missing.meet(*step);
    } else {
      ++dropped;
    }
    begin += line.size();
  }
  missing.meet(last_step + 1);
  if (dropped > 0 || !there) write_file_atomically(path, kept);
  JsonLines lines(path, std::ssize(kept));
  lines.dropped_lines_ = dropped;
  lines.missing_ = missing.found;
  return lines;
}

}  // namespace tilewave

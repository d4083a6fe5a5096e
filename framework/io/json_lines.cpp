// A file of JSON objects, one a line.
#include "framework/io/json_lines.h"

#include <cerrno>
#include <fcntl.h>
#include <nlohmann/json.hpp>

#include "framework/io/system_calls.h"
#include "kernels/error.h"

namespace tilewave {
namespace {

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool is_kept(std::string_view line, std::int64_t last_step) {
  const auto object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object() || line.find('\0') != std::string_view::npos) return false;  // nlohmann's parser stops at a zero byte
  const auto step = object.find("step");
  return step != object.end() && step->is_number_integer() && step->get<std::int64_t>() <= last_step;
}

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
  return JsonLines(path);
}

JsonLines JsonLines::resume(const std::filesystem::path& path, std::int64_t last_step) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return create(path);
  const std::string before = read_file(path, kMostJsonLinesBytes);
  std::string kept;
  std::int64_t dropped = 0;
  for (std::size_t begin = 0; begin < before.size();) {
    const std::size_t end = before.find('\n', begin);
    const bool whole = end != std::string::npos;
    const std::string_view line = std::string_view(before).substr(begin, whole ? end - begin + 1 : std::string::npos);
    if (whole && is_kept(line, last_step)) {
      kept += line;
    } else {
      ++dropped;
    }
    begin += line.size();
  }
  if (dropped > 0) write_file_atomically(path, kept);
  JsonLines lines(path);
  lines.bytes_ = std::ssize(kept);
  lines.dropped_lines_ = dropped;
  return lines;
}

JsonLines::JsonLines(std::filesystem::path path) : path_(std::move(path)) { descriptor_ = open_path(path_, "open", O_WRONLY | O_APPEND); }

void JsonLines::append(const JsonObject& line) {
  const std::string text = line.text() + "\n";
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t count = system_calls().write(descriptor_.get(), rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int error = count < 0 ? errno : EIO;
      system_calls().ftruncate(descriptor_.get(), bytes_);  // if this fails too, resume drops the torn line
      throw Error(system_sentence(path_, "write", error));
    }
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  bytes_ += std::ssize(text);
}

void JsonLines::sync() {
  while (system_calls().fsync(descriptor_.get()) != 0) {
    TW_CHECK(errno == EINTR, system_sentence(path_, "write", errno));
  }
}

}  // namespace tilewave

// The fields of a config.json of transformers, taken out one by one, so that what nobody asked for is left: every one is used, known to
// change no number that tilewave computes, or refused in a sentence that names it, its value and what tilewave has in its place.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/core/error.h"

namespace tilewave {

// However deep a value nests, its text does not.
std::string field_text(const nlohmann::ordered_json& value);

class ConfigFields {
 public:
  using Json = nlohmann::ordered_json;

  // `object` must live as long. `within` is the field that holds it, or nothing.
  ConfigFields(const Json& object, std::string file, std::string within = {})
      : object_(object), file_(std::move(file)), within_(std::move(within)) {}

  const Json* take(const std::string& key);                                              // null: it is not there
  std::int64_t count(const std::string& key, std::int64_t fallback, std::int64_t most);  // null is the fallback
  double fraction(const std::string& key, double fallback);
  double positive(const std::string& key, double fallback);
  bool flag(const std::string& key, bool fallback);
  std::string word(const std::string& key, const std::string& fallback);
  // A field that tilewave computes with one value alone.
  void must_be(const std::string& key, const Json& only, std::string_view why);

  template <class... Parts>
  [[noreturn]] void refuse(const std::string& key, const Json& value, const Parts&... parts) const {
    throw InputError(concat(file_, ": ", printable_name(key), " = ", field_text(value), ": ", parts...));
  }

  // Fields that were taken, and those that are harmless; refuses what is neither.
  struct Sorted {
    std::vector<std::string> used, harmless;
  };
  Sorted sorted() const;

  const std::string& file() const { return file_; }

 private:
  std::string printable_name(const std::string& key) const;

  const Json& object_;
  std::string file_, within_;
  std::set<std::string> taken_;
};

}  // namespace tilewave

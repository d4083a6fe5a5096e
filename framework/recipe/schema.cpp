// Draft 4 says an open end of a range by a boolean beside it.
#include "framework/recipe/schema.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace tilewave {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  return whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

void add_range(Json& schema, const Range& range) {
  if (std::isfinite(range.least)) {
    schema["minimum"] = number(range.least);
    if (!range.least_included) schema["exclusiveMinimum"] = true;
  }
  if (std::isfinite(range.most)) {
    schema["maximum"] = number(range.most);
    if (!range.most_included) schema["exclusiveMaximum"] = true;
  }
}

Json schema_of(const Field& field) {
  Json schema;
  const std::string unit = field.key.unit.empty() ? "" : " (" + std::string(field.key.unit) + ")";
  schema["description"] = std::string(field.key.meaning) + unit;
  struct Typed {
    Json& schema;
    const Range& range;
    std::span<const std::string_view> words;

    void operator()(const bool* member) const {
      schema["type"] = "boolean";
      schema["default"] = *member;
    }
    void operator()(const std::int64_t* member) const {
      schema["type"] = "integer";
      add_range(schema, range);
      schema["default"] = *member;
    }
    void operator()(const double* member) const {
      schema["type"] = "number";
      add_range(schema, range);
      schema["default"] = *member;
    }
    void operator()(const std::string* member) const {
      schema["type"] = "string";
      if (!words.empty()) schema["anyOf"] = {{{"enum", words_list()}}, {{"type", "string"}}};
      schema["default"] = *member;
    }
    Json words_list() const {
      Json list = Json::array();
      for (const std::string_view word : words) list.push_back(word);
      return list;
    }
    void operator()(const Choice& choice) const {
      schema["type"] = "string";
      schema["enum"] = Json::array();
      for (const std::string_view name : choice.names) schema["enum"].push_back(name);
      for (const std::string_view former : choice.former) {
        if (!former.empty()) schema["enum"].push_back(former);
      }
      schema["default"] = choice.names.at(choice.get());
    }
  };
  std::visit(Typed{schema, field.key.range, field.key.words}, field.member);
  return schema;
}

}  // namespace

std::string recipe_schema(const std::vector<Section>& sections, std::string_view title) {
  Json schema = {{"$schema", "http://json-schema.org/draft-04/schema#"},
                 {"title", title},
                 {"type", "object"},
                 {"additionalProperties", false},
                 {"properties", Json::object()}};
  for (const Section& section : sections) {
    Json keys = Json::object();
    for (const Field& field : section.fields) keys[std::string(field.name)] = schema_of(field);
    schema["properties"][std::string(section.name)] = {
        {"description", section.meaning}, {"type", "object"}, {"additionalProperties", false}, {"properties", std::move(keys)}};
  }
  return schema.dump(2) + "\n";
}

}  // namespace tilewave

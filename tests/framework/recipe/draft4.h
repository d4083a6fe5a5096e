// The part of JSON Schema's draft 4 that a recipe's schema uses, written from its text: whether a document is valid, or the first thing
// that is wrong with it. A keyword that it does not know is an error, so that nothing passes unseen.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace tilewave {

inline std::string draft4_fault(const nlohmann::json& schema, const nlohmann::json& value, const std::string& where = "") {
  static const std::set<std::string> known = {"$schema",
                                              "title",
                                              "description",
                                              "default",
                                              "type",
                                              "enum",
                                              "anyOf",
                                              "properties",
                                              "minimum",
                                              "maximum",
                                              "exclusiveMinimum",
                                              "exclusiveMaximum",
                                              "additionalProperties"};
  for (const auto& [keyword, ignored] : schema.items()) {
    if (!known.contains(keyword)) return where + ": unknown keyword " + keyword;
  }
  if (schema.contains("type")) {
    const std::string type = schema["type"];
    const bool right = type == "object"    ? value.is_object()
                       : type == "string"  ? value.is_string()
                       : type == "boolean" ? value.is_boolean()
                       : type == "integer" ? value.is_number_integer()
                       : type == "number"  ? value.is_number()
                                           : false;
    if (!right) return where + " is no " + type;
  }
  if (schema.contains("enum") && std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
    return where + " is none of the enum";
  if (schema.contains("anyOf")) {
    const auto& any = schema["anyOf"];
    if (std::none_of(any.begin(), any.end(), [&](const nlohmann::json& one) { return draft4_fault(one, value, where).empty(); }))
      return where + " is none of the forms";
  }
  if (value.is_number()) {
    const double number = value.get<double>();
    if (schema.contains("minimum")) {
      const double least = schema["minimum"];
      if (schema.value("exclusiveMinimum", false) ? number <= least : number < least) return where + " is below the minimum";
    }
    if (schema.contains("maximum")) {
      const double most = schema["maximum"];
      if (schema.value("exclusiveMaximum", false) ? number >= most : number > most) return where + " is above the maximum";
    }
  }
  if (!value.is_object()) return {};
  const nlohmann::json properties = schema.value("properties", nlohmann::json::object());
  for (const auto& [key, child] : value.items()) {
    if (properties.contains(key)) {
      if (const std::string fault = draft4_fault(properties[key], child, where + "." + key); !fault.empty()) return fault;
    } else if (schema.contains("additionalProperties") && schema["additionalProperties"] == false) {
      return where + "." + key + " is no key";
    }
  }
  return {};
}

}  // namespace tilewave

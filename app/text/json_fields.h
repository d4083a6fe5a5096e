// A JSON object's fields as what they are.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace tilewave {

inline std::string text_at(const nlohmann::ordered_json& object, const char* key) { return object.at(key).get<std::string>(); }
inline double number_at(const nlohmann::ordered_json& object, const char* key) { return object.at(key).get<double>(); }
inline std::int64_t count_at(const nlohmann::ordered_json& object, const char* key) { return object.at(key).get<std::int64_t>(); }

}  // namespace tilewave

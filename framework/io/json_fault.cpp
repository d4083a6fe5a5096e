// The library's numbers of its exceptions are documented; its words are not repeated, but for the name of a field.
#include "framework/io/json_fault.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "framework/io/file.h"
#include "kernels/core/error.h"

namespace tilewave {

std::string json_fault(const std::exception& error) {
  using Json = nlohmann::json;
  constexpr int kNoSuchField = 403;
  if (const auto* parse = dynamic_cast<const Json::parse_error*>(&error)) return concat("it is no JSON from its byte ", parse->byte, " on");
  if (const auto* range = dynamic_cast<const Json::out_of_range*>(&error); range != nullptr && range->id == kNoSuchField) {
    const std::string_view what = range->what();
    const std::size_t open = what.find('\''), close = what.rfind('\'');
    if (open < close) return concat("its field \"", printable(what.substr(open + 1, close - open - 1)), "\" is missing");
  }
  if (dynamic_cast<const Json::exception*>(&error) != nullptr) return "a field of it is of another kind than it must be";
  return printable(error.what());
}

}  // namespace tilewave

// What a model's texts begin and end with, for its config.json.
#pragma once

#include <cstdint>
#include <optional>

namespace tilewave {

struct TextEnds {
  std::optional<std::int32_t> begin, end;  // ids
};

}  // namespace tilewave

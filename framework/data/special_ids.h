// Ids that are no text. Those of tilewave's own tokenizers have one place in all of them; others have theirs wherever their files put them.
#pragma once

#include <cstdint>

namespace tilewave {

inline constexpr std::int32_t kPadId = 0, kUnknownId = 1, kBeginId = 2, kEndId = 3;
inline constexpr std::int32_t kSpecialIds = 4;

// What stands before and behind a target where pairs are trained on and decoded.
struct PairFrame {
  std::int32_t begin = kBeginId, end = kEndId;

  bool holds(std::int32_t id) const { return id == begin || id == end; }
  friend bool operator==(const PairFrame&, const PairFrame&) = default;
};

}  // namespace tilewave

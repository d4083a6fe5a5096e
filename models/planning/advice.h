// For each number of a recipe that a person may move: the nearest better one in either direction, by plans of the whole step.
// "Better" is less predicted time per real token (real_tokens.h) and more FLOPs a second, so that a smaller model is not advised for being
// smaller.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/planning/plan.h"
#include "models/planning/real_tokens.h"
#include "models/planning/size_effects.h"

namespace tilewave {

inline constexpr double kMinGain = 0.005;   // of the step's time per real token; less is no advice
inline constexpr double kNearlyBest = 0.9;  // the nearest number with so much of the best one's gain is advised

// A number that was tried, or the recipe's own, whose gains are none, and what it costs the GEMMs of its part.
struct TriedSize {
  std::int64_t size = 0;
  double part_s = 0.0;     // of the step's time, that the part takes
  double step_gain = 0.0;  // of the step's time per real token
  double rate_gain = 0.0;  // of its FLOPs a second
  SizeEffects effects;
};

struct Advice {
  std::string quantity;    // "vocabulary", "target rows"
  std::int64_t from = 0;   // as the recipe has it
  std::int64_t to = 0;     // the number that was found, also where it is not worth advising
  bool advised = false;    // false: no change; the gains are those of the best number that was tried
  double part_gain = 0.0;  // of the time per real token that `part` takes
  double step_gain = 0.0;  // of the whole step's
  std::string part;        // "projection", "ffn", "attention"
  std::int64_t cost_rows = 0, cost_bytes = 0, cost_parameters = 0;
  std::string set;           // what to say to tilewave: "--set guidelines.pad_vocabulary_to=8"
  std::string_view section;  // of the guide; or what it is, where no section speaks of it
  std::string remark = {};   // what else does the same, or does it already
  // Of d_ff: all numbers that were tried and the recipe's, the smallest first; of what is advised in either direction the same.
  std::vector<TriedSize> tried = {};
};

// The quantities in the order vocabulary, batch, d_ff, heads, sequence; at most one advice a direction each. `asked` is what the person's
// recipe says of whole waves, which `recipe` has settled.
std::vector<Advice> advise(const Recipe& recipe, const DeviceInfo& device, RealTokenCounter& tokens,
                           WaveFreeBatch asked = WaveFreeBatch::off);
std::vector<Advice> advise(const Recipe& recipe, const DeviceInfo& device);

}  // namespace tilewave

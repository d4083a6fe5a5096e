// What an ablation varies. A switch is a key of the recipe and the values it takes, written as --switch takes it:
//   pad_vocabulary_to=1,8                            keys of [guidelines] and [gemm] may leave out their section
//   batch.source_tokens+batch.target_tokens=2560,5120  keys joined by + take the same value
// Several switches make every combination of their values. The first switch is the one under study: a setting is compared with the
// one that has the first switch's first value and everything else alike.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "models/recipe/config.h"

namespace tilewave {

inline constexpr std::size_t kMaxSettings = 32;

struct Switch {
  std::vector<std::string> keys;  // "guidelines.pad_vocabulary_to"
  std::vector<std::string> values;
};

// Switches with spaces between. InputError names what is no switch, and for an unknown key the nearest one.
std::vector<Switch> parse_switches(std::string_view text);

struct Setting {
  std::string name;                    // "pad_vocabulary_to=8"
  std::vector<std::string> overrides;  // as --set takes them
  std::size_t baseline = 0;            // which of the settings it is compared with; its own number where it is one
  bool asked_for = true;               // false: one of those without switches, whose guidelines may have no answer
};

// Every combination, the last switch varying fastest. Without switches: none of the guidelines that the model has, each one alone, and all
// of them, as far as they have an answer.
std::vector<Setting> settings_of(const std::vector<Switch>& switches, const ModelConfig& model = {});

// The recipe under a setting. InputError where a value is none that its key may have.
Recipe with_setting(const Recipe& recipe, const Setting& setting);

// The recipe as an ablation runs it on a CPU where its step is too large for one: features and tokens an eighth, vocabulary a
// sixteenth, two layers a side, fp32. What a size is beyond its last multiple of 8 stays, so that a size keeps its alignment.
struct ToyRecipe {
  Recipe recipe;
  std::vector<std::string> changes;  // sentences: "model.d_model = 128, where the recipe says 1024"
};
ToyRecipe toy_sized(const Recipe& recipe);

}  // namespace tilewave

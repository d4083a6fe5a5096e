// What a person meant by a word that tilewave does not know: the known word fewest edits away, or the one that another
// framework's name for the same thing stands for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/recipe/describe.h"

namespace tilewave {

// Another framework's name of a key, and ours in full: {"n_embd", "model.d_model"}.
struct Alias {
  std::string_view theirs;
  std::string_view ours;
};

// Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other (optimal string alignment).
std::int64_t edit_distance(std::string_view a, std::string_view b);

// The first candidate that begins with the word, where that has three letters or more; else the one fewest edits away, the earlier
// of equals; empty where none is within a third of the word's length, rounded up. Case does not count, and '-' is '_'.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);

// The known key, as "section.key", that `section`.`key` most likely means; empty where nothing is near. `section` may be empty.
// In order: an alias, the same key of another section, the nearest key of this section, the nearest key of any.
std::string nearest_key(std::string_view section, std::string_view key, const std::vector<Section>& sections,
                        std::span<const Alias> aliases);

}  // namespace tilewave

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

// Other frameworks' names of a key, with spaces between them, in lower case with '_' for '-', or "section.name" where one means it
// there alone; ours in full, {"n_embd hidden_size", "model.d_model"}, or nothing where tilewave has no such thing; and a sentence where
// the two differ, in units for example, or what stands in its place.
struct Alias {
  std::string_view theirs;
  std::string_view ours;
  std::string_view note = {};
};

// Other frameworks' words for a value of our key, and the sentence that says what to write.
struct ForeignValue {
  std::string_view key;
  std::string_view theirs;
  std::string_view advice;
};

// The names of a list with spaces between.
std::vector<std::string_view> listed_names(std::string_view names);

struct ForeignNames {
  std::span<const Alias> keys;
  std::span<const ForeignValue> values;
};

// Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other (optimal string alignment).
std::int64_t edit_distance(std::string_view a, std::string_view b);

// The first candidate that begins with the word, where that has three letters or more; else the one fewest edits away, the earlier
// of equals; empty where none is within a third of the word's length, rounded up. Case does not count, and '-' is '_'.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);

struct MeantKey {
  std::string key;        // "section.key"; empty: nothing is near, or tilewave has no such thing
  std::string_view note;  // of an alias

  friend bool operator==(const MeantKey&, const MeantKey&) = default;
};

// The known key that `section`.`key` most likely means. `section` may be empty.
// In order: an alias, the same key of another section, the nearest key of this section, the nearest key of any.
MeantKey nearest_key(std::string_view section, std::string_view key, const std::vector<Section>& sections, std::span<const Alias> aliases);

// What to say to another framework's word for a value; empty where it is none.
std::string_view foreign_advice(std::string_view key, std::string_view value, std::span<const ForeignValue> values);

}  // namespace tilewave

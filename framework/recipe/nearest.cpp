// Optimal string alignment over three rows of its table; words are compared in lower case with '_' for '-'.
#include "framework/recipe/nearest.h"

#include <algorithm>
#include <numeric>

namespace tilewave {
namespace {

constexpr std::size_t kShortestBeginning = 3;
constexpr std::size_t kLongestWord = 64;  // longer ones are near to nothing

std::string plain(std::string_view word) {
  std::string result(word);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return result;
}

bool lists(std::string_view names, std::string_view name) {
  const std::vector<std::string_view> all = listed_names(names);
  return std::find(all.begin(), all.end(), name) != all.end();
}

}  // namespace

std::vector<std::string_view> listed_names(std::string_view names) {
  std::vector<std::string_view> result;
  for (std::size_t begin = 0; begin < names.size();) {
    const std::size_t end = std::min(names.find(' ', begin), names.size());
    if (end > begin) result.push_back(names.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

std::int64_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::int64_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  std::iota(current.begin(), current.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, previous);
    std::swap(previous, current);
    current[0] = static_cast<std::int64_t>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
  }
  return current.back();
}

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.size() > kLongestWord) return {};
  const std::string asked = plain(word);
  for (const std::string_view candidate : candidates) {  // the beginning of a word is that word
    if (asked.size() >= kShortestBeginning && plain(candidate).starts_with(asked)) return candidate;
  }
  std::int64_t least = (static_cast<std::int64_t>(asked.size()) + 2) / 3 + 1;
  std::string_view nearest;
  for (const std::string_view candidate : candidates) {
    const std::int64_t distance = edit_distance(asked, plain(candidate));
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

MeantKey nearest_key(std::string_view section, std::string_view key, const std::vector<Section>& sections, std::span<const Alias> aliases) {
  const auto full = [](const Section& of, std::string_view name) { return std::string(of.name) + "." + std::string(name); };
  const std::string asked = plain(key), asked_there = plain(section) + "." + asked;
  for (const std::string& theirs : {asked_there, asked}) {
    const auto alias = std::find_if(aliases.begin(), aliases.end(), [&](const Alias& known) { return lists(known.theirs, theirs); });
    if (alias != aliases.end()) return {.key = std::string(alias->ours), .note = alias->note};
  }
  const auto nearest_in = [&](const Section& in) {
    std::vector<std::string_view> names;
    for (const Field& field : in.fields) names.push_back(field.name);
    return nearest_word(key, names);
  };
  for (const Section& other : sections) {
    for (const Field& field : other.fields) {
      if (field.name == asked) return {.key = full(other, field.name), .note = {}};
    }
  }
  std::string nearest;
  std::int64_t least = 0;
  for (const Section& in : sections) {
    const std::string_view name = nearest_in(in);
    if (name.empty()) continue;
    if (in.name == section) return {.key = full(in, name), .note = {}};
    const std::int64_t distance = edit_distance(asked, name);
    if (nearest.empty() || distance < least) {
      nearest = full(in, name);
      least = distance;
    }
  }
  return {.key = nearest, .note = {}};
}

std::string_view foreign_advice(std::string_view key, std::string_view value, std::span<const ForeignValue> values) {
  const std::string asked = plain(value);
  const auto found =
      std::find_if(values.begin(), values.end(), [&](const ForeignValue& known) { return known.key == key && lists(known.theirs, asked); });
  return found == values.end() ? std::string_view() : found->advice;
}

}  // namespace tilewave

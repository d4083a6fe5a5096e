#include "framework/data/split_pattern.h"

#include <algorithm>
#include <utility>

#include "framework/io/file.h"
#include "framework/io/utf8.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::size_t kMaxNodes = 1'000, kMaxDepth = 50, kMaxRepeats = 1'000, kNoEnd = ~std::size_t{0};
constexpr std::int64_t kStepsOfAText = 1 << 16, kStepsOfAByte = 64;

CharacterClass of_categories(CategorySet set) {
  CharacterClass characters;
  characters.add_categories(set);
  return characters;
}

// Where simple case folding takes more than the two letters of ASCII.
void add_folded(char32_t letter, CharacterClass& characters) {
  const auto lower = static_cast<char32_t>(letter >= U'A' && letter <= U'Z' ? letter + 32 : letter);
  characters.add(lower, lower);
  if (lower < U'a' || lower > U'z') return;
  characters.add(lower - 32, lower - 32);
  if (lower == U's') characters.add(0x17F, 0x17F);
  if (lower == U'k') characters.add(0x212A, 0x212A);
}

}  // namespace

void CharacterClass::finish() {
  for (char32_t code = 0; code < ascii_.size(); ++code) ascii_[code] = holds_slowly(code);
}

bool CharacterClass::holds_slowly(char32_t code) const {
  const bool held = (categories_ >> static_cast<unsigned>(category_of(code)) & 1u) != 0 || (white_space_ && is_white_space(code)) ||
                    std::ranges::any_of(ranges_, [&](Range range) { return code >= range.first && code <= range.last; }) ||
                    std::ranges::any_of(others_, [&](const CharacterClass& other) { return other.holds_slowly(code); });
  return held != complemented_;
}

// Reads a pattern from its left to its right; what a part is followed by is filled in once it is known.
class SplitPatternReader {
 public:
  SplitPatternReader(SplitPattern& pattern, std::string_view text) : pattern_(pattern), text_(text) {}

  void read() {
    pattern_.nodes_.emplace_back();  // accept
    const Part whole = alternatives({});
    if (!rest().empty()) refuse(concat("the ) of its byte ", at_ + 1), "which closes nothing");
    pattern_.start_ = whole.start;
    lead_to(whole, 0);
  }

 private:
  using Node = SplitPattern::Node;
  using Kind = SplitPattern::Kind;
  struct Place {  // where the number of the node that follows is to be written
    std::size_t node, branch = kNoEnd;
  };
  struct Part {
    std::size_t start = kNoEnd;  // of what takes no character: none
    std::vector<Place> ends;
  };
  struct Settings {
    bool folds = false;
    std::size_t depth = 0;
  };

  [[noreturn]] void refuse(std::string_view what, std::string_view why) const {
    throw InputError(concat("the pattern \"", printable(text_), "\" has ", what, ", ", why, "."));
  }
  [[noreturn]] void refuse_unknown(std::string_view what) const { refuse(what, "which tilewave does not read"); }

  std::string_view rest() const { return text_.substr(at_); }
  bool take(std::string_view word) {
    if (!rest().starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  char32_t character() {
    const std::size_t bytes = character_bytes(rest());
    if (bytes == 0) refuse("an end that is too early", "or bytes that are no UTF-8");
    const char32_t code = code_point(rest().substr(0, bytes));
    at_ += bytes;
    return code;
  }

  std::size_t add(Node node) {
    if (pattern_.nodes_.size() >= kMaxNodes) refuse("too many parts", concat("more than ", kMaxNodes));
    pattern_.nodes_.push_back(std::move(node));
    return pattern_.nodes_.size() - 1;
  }
  void lead_to(const Part& part, std::size_t next) {
    for (const Place place : part.ends) {
      Node& node = pattern_.nodes_[place.node];
      (place.branch == kNoEnd ? node.next : node.branches[place.branch]) = next;
    }
  }

  Part alternatives(Settings settings) {
    if (settings.depth > kMaxDepth) refuse("groups in groups", concat("more than ", kMaxDepth, " deep"));
    std::vector<Part> parts = {sequence(settings)};
    while (take("|")) parts.push_back(sequence(settings));
    if (parts.size() == 1 && parts.front().start != kNoEnd) return std::move(parts.front());
    return fork(parts);
  }

  Part fork(std::vector<Part>& parts) {
    Part whole{.start = add({.kind = Kind::fork}), .ends = {}};
    for (Part& part : parts) {
      std::vector<std::size_t>& branches = pattern_.nodes_[whole.start].branches;
      branches.push_back(part.start);
      if (part.start == kNoEnd) whole.ends.push_back({.node = whole.start, .branch = branches.size() - 1});
      whole.ends.insert(whole.ends.end(), part.ends.begin(), part.ends.end());
    }
    return whole;
  }

  Part sequence(Settings settings) {
    Part whole;
    while (!rest().empty() && rest().front() != '|' && rest().front() != ')') {
      Part part = item(settings);
      if (part.start == kNoEnd) continue;
      if (whole.start == kNoEnd) {
        whole.start = part.start;
      } else {
        lead_to(whole, part.start);
      }
      whole.ends = std::move(part.ends);
    }
    return whole;
  }

  Part item(Settings settings) {
    if (rest().front() == '(') return group(settings);
    CharacterClass characters = one_of(settings);
    characters.finish();
    Node node{.kind = Kind::characters, .characters = std::move(characters)};
    quantifier(node);
    const std::size_t at = add(std::move(node));
    return {.start = at, .ends = {{.node = at}}};
  }

  Part group(Settings settings) {
    ++settings.depth;
    const bool ahead = rest().starts_with("(?=") || rest().starts_with("(?!");
    const bool negative = rest().starts_with("(?!");
    if (ahead) {
      at_ += 3;
    } else if (take("(?i:")) {
      settings.folds = true;
    } else if (!take("(?:")) {
      if (rest().starts_with("(?")) refuse_unknown(concat("the group ", printable(rest().substr(0, 4))));
      take("(");  // what a group captures is not asked for
    }
    Part part = alternatives(settings);
    if (!take(")")) refuse("a group", "which is not closed");
    if (ahead) {
      const std::size_t look = add({.kind = Kind::look_ahead, .negative = negative, .branches = {part.start}});
      lead_to(part, 0);
      part = {.start = look, .ends = {{.node = look}}};
    } else if (take("?")) {
      std::vector<Part> either = {std::move(part), {}};
      part = fork(either);
    }
    if (!rest().empty() && std::string_view("?*+{").find(rest().front()) != std::string_view::npos)
      refuse_unknown(concat("the quantifier ", rest().substr(0, 1), " of a group"));
    return part;
  }

  CharacterClass one_of(Settings settings) {
    CharacterClass characters;
    if (take("[")) {
      if (settings.folds) refuse_unknown("a class within (?i:...)");
      return bracketed();
    }
    if (take("\\")) return escaped_class(settings);
    if (take(".")) {
      characters.add(U'\n', U'\n');
      characters.complement();
      return characters;
    }
    const char32_t code = character();
    if (code < 0x80 && std::string_view("^$*+?{").find(static_cast<char>(code)) != std::string_view::npos)
      refuse_unknown(concat("a ", static_cast<char>(code), " in this place"));
    add_literal(code, settings, characters);
    return characters;
  }

  void add_literal(char32_t code, Settings settings, CharacterClass& characters) const {
    if (!settings.folds) {
      characters.add(code, code);
      return;
    }
    if (code >= 0x80) refuse_unknown(concat(named_character(code), " within (?i:...)"));
    add_folded(code, characters);
  }

  // Behind a backslash.
  CharacterClass escaped_class(Settings settings) {
    CharacterClass characters;
    const char32_t code = character();
    if (code == U's' || code == U'S') {
      characters.add_white_space();
    } else if (code == U'd' || code == U'D') {
      characters.add_categories(categories_named("Nd"));
    } else if (code == U'p' || code == U'P') {
      characters = of_categories(named_set());
    } else {
      add_literal(escaped_character(code), settings, characters);
    }
    if (code == U'S' || code == U'D' || code == U'P') characters.complement();
    return characters;
  }

  CategorySet named_set() {
    const std::size_t end = rest().find('}');
    if (!rest().starts_with('{') || end == std::string_view::npos) refuse("a \\p", "which no {name} follows");
    const std::string_view name = rest().substr(1, end - 1);
    const CategorySet set = categories_named(name);
    if (set == 0) refuse_unknown(concat("\\p{", printable(name), "}"));
    at_ += end + 1;
    return set;
  }

  char32_t escaped_character(char32_t code) const {
    constexpr std::pair<char32_t, char32_t> controls[] = {{U'r', U'\r'}, {U'n', U'\n'}, {U't', U'\t'}, {U'f', U'\f'}, {U'v', U'\v'}};
    for (const auto& [name, control] : controls) {
      if (code == name) return control;
    }
    const bool word = (code >= U'0' && code <= U'9') || (code >= U'a' && code <= U'z') || (code >= U'A' && code <= U'Z') || code >= 0x80;
    if (word) refuse_unknown(concat("\\", code < 0x80 ? std::string(1, static_cast<char>(code)) : named_character(code)));
    return code;
  }

  // Behind a [.
  CharacterClass bracketed() {
    CharacterClass characters;
    const bool complemented = take("^");
    bool empty = true;
    while (!take("]")) {
      if (rest().starts_with('[') || rest().starts_with("&&"))
        refuse_unknown(concat(rest().substr(0, rest()[0] == '[' ? 1 : 2), " in a class"));
      if (rest().starts_with('\\') && rest().size() > 1 && std::string_view("sSdDpP").find(rest()[1]) != std::string_view::npos) {
        ++at_;
        characters.add(escaped_class({}));
      } else {
        add_range(characters);
      }
      empty = false;
    }
    if (empty) refuse_unknown("an empty class");
    if (complemented) characters.complement();
    return characters;
  }

  void add_range(CharacterClass& characters) {
    const char32_t first = class_character();
    char32_t last = first;
    if (rest().starts_with('-') && !rest().starts_with("-]")) {
      ++at_;
      last = class_character();
      if (last < first) refuse("a range", "whose end comes before its beginning");
    }
    characters.add(first, last);
  }

  char32_t class_character() {
    const char32_t code = character();
    return code == U'\\' ? escaped_character(character()) : code;
  }

  void quantifier(Node& node) {
    if (take("?")) {
      node.least = 0;
    } else if (take("*")) {
      node.least = 0;
      node.most = kNoEnd;
    } else if (take("+")) {
      node.most = kNoEnd;
    } else if (take("{")) {
      counts(node);
      if (!rest().empty() && std::string_view("?*+{").find(rest().front()) != std::string_view::npos)
        refuse_unknown(concat("a ", rest().substr(0, 1), " behind {...}"));
      return;
    } else {
      return;
    }
    if (take("+")) node.greed = SplitPattern::Greed::possessive;
    if (!rest().empty() && std::string_view("?*+{").find(rest().front()) != std::string_view::npos)
      refuse_unknown(concat("a ", rest().substr(0, 1), " behind a quantifier"));
  }

  // Behind a {.
  void counts(Node& node) {
    node.least = number();
    node.most = node.least;
    if (take(",")) node.most = rest().starts_with('}') ? kNoEnd : number();
    if (!take("}") || node.most < node.least || node.most == 0) refuse("a {", "which no count such as {1,3} follows");
  }

  std::size_t number() {
    std::size_t value = 0, digits = 0;
    for (; !rest().empty() && rest().front() >= '0' && rest().front() <= '9'; ++digits, ++at_) {
      value = value * 10 + static_cast<std::size_t>(rest().front() - '0');
      if (value > kMaxRepeats) refuse("a count", concat("beyond ", kMaxRepeats));
    }
    if (digits == 0) refuse("a {", "which no count such as {1,3} follows");
    return value;
  }

  SplitPattern& pattern_;
  std::string_view text_;
  std::size_t at_ = 0;
};

SplitPattern::SplitPattern(std::string_view pattern) {
  TW_CHECK_INPUT(!pattern.empty(), "the pattern is empty; one that cuts text into words is needed.");
  SplitPatternReader(*this, pattern).read();
}

struct SplitPattern::Walk {
  std::string_view text;
  std::int64_t steps;  // that are left

  std::size_t bytes(std::size_t at) const {
    const auto byte = static_cast<unsigned char>(text[at]);
    return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
  }
  bool holds(const CharacterClass& characters, std::size_t at) const {
    const auto byte = static_cast<unsigned char>(text[at]);
    return characters.holds(byte < 0x80 ? byte : code_point(text.substr(at, bytes(at))));
  }
  void step() { TW_CHECK_INPUT(--steps >= 0, "the tokenizer's pattern tries too many ways to cut this text; take a simpler pattern."); }
};

std::optional<SplitPattern::Match> SplitPattern::find(std::string_view text, std::size_t from) const {
  Walk walk{.text = text, .steps = kStepsOfAText + kStepsOfAByte * std::ssize(text)};
  for (std::size_t at = from; at < text.size(); at += walk.bytes(at)) {
    const std::optional<std::size_t> end = match(walk, start_, at);
    if (end && *end > at) return Match{.begin = at, .end = *end};
  }
  return std::nullopt;
}

std::optional<std::size_t> SplitPattern::match(Walk& walk, std::size_t index, std::size_t at) const {
  walk.step();
  const Node& node = nodes_[index];
  switch (node.kind) {
    case Kind::accept:
      return at;
    case Kind::characters:
      return match_characters(walk, node, at);
    case Kind::look_ahead:
      return match(walk, node.branches.front(), at).has_value() == node.negative ? std::nullopt : match(walk, node.next, at);
    case Kind::fork:
      for (const std::size_t branch : node.branches) {
        if (const auto end = match(walk, branch, at)) return end;
      }
  }
  return std::nullopt;
}

std::optional<std::size_t> SplitPattern::match_characters(Walk& walk, const Node& node, std::size_t at) const {
  const std::size_t begin = at;
  std::size_t count = 0;
  for (; count < node.most && at < walk.text.size() && walk.holds(node.characters, at); ++count) {
    at += walk.bytes(at);
    walk.step();
  }
  for (;; --count) {
    if (count < node.least) return std::nullopt;
    if (const auto end = match(walk, node.next, at)) return end;
    if (node.greed == Greed::possessive || at == begin || count == node.least) return std::nullopt;
    do {
      --at;
    } while ((static_cast<unsigned char>(walk.text[at]) & 0xC0u) == 0x80u);
  }
}

}  // namespace tilewave

#include "framework/data/reserved_characters.h"

#include <algorithm>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::array kReserved = {U'\0', ReservedCharacters::kSpace, ReservedCharacters::kSkipped};

// The noncharacters, then private use, whose meaning no two programs share; the latter alone are more than any vocabulary asks for.
constexpr std::array kCandidates = {std::pair{char32_t{0xFDD0}, char32_t{0xFDEF}}, std::pair{char32_t{0xF0000}, char32_t{0x10FFFD}}};

// Field 1000 of the model's message, bytes with their length before them.
constexpr std::string_view kMarkTag = "\xC2\x3E", kMarkName = "tilewave/", kMarkVersion = "1 ";
constexpr std::size_t kLongestMark = 64;

// Where the mark begins; the model's size where there is none.
std::size_t mark_at(std::string_view model) {
  const std::size_t name = model.rfind(kMarkName);
  const std::size_t before = kMarkTag.size() + 1;
  if (name == std::string_view::npos || name < before || model.size() - name > kLongestMark) return model.size();
  const std::size_t at = name - before;
  const bool framed = model.substr(at).starts_with(kMarkTag) && static_cast<unsigned char>(model[name - 1]) == model.size() - name;
  return framed ? at : model.size();
}

// Calls `each` with every character of valid UTF-8.
void for_each_character(std::string_view text, auto&& each) {
  while (!text.empty()) {
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, character_bytes(text)));
    each(character);
    text.remove_prefix(character.size());
  }
}

}  // namespace

ReservedCharacters::ReservedCharacters(const CharacterSet& text) : stand_ins_(std::in_place) {
  std::size_t found = 0;
  for (const auto& [first, last] : kCandidates) {
    for (char32_t code = first; code <= last && found < kReserved.size(); ++code) {
      if (!text.contains(code)) (*stand_ins_)[found++] = code;
    }
  }
  TW_CHECK_INPUT(found == kReserved.size(), "the text holds every private-use character there is, and a bpe tokenizer needs ",
                 kReserved.size(), " for itself; use data.tokenizer = \"bytes\".");
  note_first_bytes();
}

void ReservedCharacters::note_first_bytes() {
  for (const auto& codes : {kReserved, *stand_ins_}) {
    for (const char32_t code : codes) {
      std::string character;
      append_character(character, code);
      may_differ_[static_cast<unsigned char>(character.front())] = true;
    }
  }
}

ReservedCharacters ReservedCharacters::of_model(std::string_view model) {
  std::string_view named = model.substr(mark_at(model));
  ReservedCharacters reserved;
  if (named.empty()) return reserved;
  named.remove_prefix(kMarkTag.size() + 1 + kMarkName.size());
  TW_CHECK_INPUT(named.starts_with(kMarkVersion), "the tokenizer prepares text in a way that this tilewave does not know (version ",
                 escaped(named.substr(0, named.find(' ')), LineEnds::escaped), "); use the tilewave that trained it, or a newer one.");
  named.remove_prefix(kMarkVersion.size());
  reserved.stand_ins_.emplace();
  for (char32_t& stand_in : *reserved.stand_ins_) {
    const std::size_t bytes = character_bytes(named);
    TW_CHECK_INPUT(bytes > 1, "the tokenizer's last bytes are damaged; bring the file back, or train a new run.");
    stand_in = code_point(named.substr(0, bytes));
    named.remove_prefix(bytes);
  }
  reserved.note_first_bytes();
  return reserved;
}

std::string ReservedCharacters::mark() const {
  if (!stand_ins_) return {};
  std::string named = std::string(kMarkName) + std::string(kMarkVersion);
  for (const char32_t stand_in : *stand_ins_) append_character(named, stand_in);
  return std::string(kMarkTag) + static_cast<char>(named.size()) + named;
}

std::string_view ReservedCharacters::without_mark(std::string_view model) { return model.substr(0, mark_at(model)); }

char32_t ReservedCharacters::hide(char32_t code) const {
  const auto reserved = std::ranges::find(kReserved, code);
  if (reserved != kReserved.end()) return (*stand_ins_)[static_cast<std::size_t>(reserved - kReserved.begin())];
  return std::ranges::find(*stand_ins_, code) != stand_ins_->end() ? kSkipped : code;
}

char32_t ReservedCharacters::reveal(char32_t code) const {
  const auto stand_in = std::ranges::find(*stand_ins_, code);
  return stand_in != stand_ins_->end() ? kReserved[static_cast<std::size_t>(stand_in - stand_ins_->begin())] : code;
}

std::string_view ReservedCharacters::hidden(std::string_view text, std::string& room) const {
  if (!stand_ins_) return text;
  std::size_t copied = 0;
  room.clear();
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!may_differ_[static_cast<unsigned char>(text[at])]) continue;
    const std::string_view character = text.substr(at, std::max<std::size_t>(1, character_bytes(text.substr(at))));
    const char32_t code = code_point(character), other = hide(code);
    if (other == code) continue;
    room += text.substr(copied, at - copied);
    append_character(room, other);
    copied = at + character.size();
    at = copied - 1;
  }
  if (copied == 0) return text;
  room += text.substr(copied);
  return room;
}

std::string ReservedCharacters::piece_of(char32_t code) const {
  std::string piece;
  append_character(piece, code == U' ' ? kSpace : stand_ins_ ? hide(code) : code);
  return piece;
}

void ReservedCharacters::add_text(std::string_view piece, std::string& text) const {
  for_each_character(piece, [&](std::string_view character) {
    const char32_t code = code_point(character);
    if (code == kSpace) {
      text += ' ';
    } else if (!stand_ins_ || reveal(code) == code) {
      text += character;
    } else {
      append_character(text, reveal(code));
    }
  });
}

std::string ReservedCharacters::shown(std::string_view piece) const {
  if (!stand_ins_) return std::string(piece);
  std::string text;
  for_each_character(piece, [&](std::string_view character) {
    const char32_t code = code_point(character), meant = reveal(code);
    if (meant == code) {
      text += character;
    } else {
      text += meant == U'\0' ? "<0x00>" : meant == kSpace ? "<U+2581>" : "\u2585";
    }
  });
  return text;
}

}  // namespace tilewave

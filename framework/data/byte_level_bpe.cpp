#include "framework/data/byte_level_bpe.h"

#include <algorithm>
#include <array>
#include <deque>
#include <unordered_map>
#include <utility>

#include "framework/data/split_pattern.h"
#include "framework/data/tokenizer_json.h"
#include "framework/data/unicode.h"
#include "framework/io/file.h"
#include "framework/io/text_file.h"
#include "framework/io/utf8.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMaxJsonBytes = std::int64_t{1} << 28;
constexpr std::int32_t kNoId = -1;

using Pieces = std::vector<std::string_view>;

// ByteLevel writes each byte as a letter that can be seen: itself where it can, else U+0100 and those behind it in order.
constexpr std::array<char32_t, 256> byte_letters() {
  std::array<char32_t, 256> letters{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool seen = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    letters[byte] = seen ? byte : next++;
  }
  return letters;
}

constexpr std::size_t kLetters = 0x144;
constexpr std::array<std::int16_t, kLetters> letter_bytes() {
  std::array<std::int16_t, kLetters> bytes{};
  bytes.fill(-1);
  constexpr std::array<char32_t, 256> letters = byte_letters();
  for (std::size_t byte = 0; byte < letters.size(); ++byte) bytes[letters[byte]] = static_cast<std::int16_t>(byte);
  return bytes;
}

// The bytes that letters stand for; nothing where a character is none of them.
std::optional<std::string> bytes_of_letters(std::string_view token) {
  static constexpr std::array<std::int16_t, kLetters> bytes = letter_bytes();
  std::string out;
  while (!token.empty()) {
    const std::size_t length = character_bytes(token);
    const char32_t code = length == 0 ? kLastCodePoint : code_point(token.substr(0, length));
    if (code >= kLetters || bytes[code] < 0) return std::nullopt;
    out += static_cast<char>(bytes[code]);
    token.remove_prefix(length);
  }
  return out;
}

// Bytes that UTF-8 text can have.
bool in_utf8(std::size_t byte) { return byte < 0xC0 || (byte >= 0xC2 && byte <= 0xF4); }

std::uint64_t merge_key(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

std::size_t white_space_before(std::string_view text, std::size_t end) {
  while (end > 0) {
    std::size_t begin = end - 1;
    while ((static_cast<unsigned char>(text[begin]) & 0xC0u) == 0x80u) --begin;
    if (!is_white_space(code_point(text.substr(begin, end - begin)))) break;
    end = begin;
  }
  return end;
}

std::size_t white_space_behind(std::string_view text, std::size_t begin) {
  while (begin < text.size()) {
    const std::size_t bytes = character_bytes(text.substr(begin));
    if (!is_white_space(code_point(text.substr(begin, bytes)))) break;
    begin += bytes;
  }
  return begin;
}

}  // namespace

struct ByteLevelBpe::Model {
  struct Merge {
    std::int32_t rank = 0, result = kNoId;
  };

  struct BytesHash {
    using is_transparent = void;  // NOLINT: the library's word
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using IdsOfBytes = std::unordered_map<std::string, std::int32_t, BytesHash, std::equal_to<>>;

  // Tokens that are found in text as they stand: at each place the longest.
  class TokenFinder {
   public:
    void add(const AddedToken& token, std::string text) {
      if (text.empty()) return;
      const auto first = static_cast<unsigned char>(text.front());
      by_first_[first].push_back({std::move(text), &token});
    }
    void finish() {
      for (auto& entries : by_first_)
        std::ranges::stable_sort(entries, [](const Entry& a, const Entry& b) { return a.text.size() > b.text.size(); });
    }

    struct Found {
      std::size_t begin, end;
      const AddedToken* token;
    };
    std::optional<Found> find(std::string_view text, std::size_t from) const {
      for (std::size_t at = from; at < text.size(); ++at) {
        for (const Entry& entry : by_first_[static_cast<unsigned char>(text[at])]) {
          if (text.substr(at).starts_with(entry.text)) return Found{.begin = at, .end = at + entry.text.size(), .token = entry.token};
        }
      }
      return std::nullopt;
    }

   private:
    struct Entry {
      std::string text;
      const AddedToken* token;
    };
    std::array<std::vector<Entry>, 256> by_first_;
  };

  struct Step {
    SplitPattern pattern;
    SplitStep::Kept kept;
  };

  struct Token {
    std::string text;  // the bytes it stands for in decoded text
    bool exists = false, special = false;
  };

  TokenizerJson file;
  std::vector<Token> tokens;
  IdsOfBytes by_bytes;
  std::unordered_map<std::uint64_t, Merge> merges;
  std::array<std::int32_t, 256> of_byte;
  TokenFinder as_they_stand, normalized;
  std::vector<Step> steps;
  bool ends_words_with_lines = false;

  Model(TokenizerJson read, std::string_view origin) : file(std::move(read)) {
    of_byte.fill(kNoId);
    std::unordered_map<std::string_view, std::int32_t> ids;
    add_vocabulary(ids, origin);
    add_merges(ids, origin);
    add_added_tokens(ids, origin);
    for (const SplitStep& split : file.splits) steps.push_back({.pattern = SplitPattern(split.pattern), .kept = split.kept});
    const auto plain = [](const AddedToken& added) {
      return !added.strips_left && !added.strips_right && added.content.find('\n') == std::string::npos;
    };
    const auto known = [](const SplitStep& split) {
      return split.pattern == kGpt2Pattern || split.pattern == kLlama3Pattern || split.pattern == kQwen2Pattern;
    };
    ends_words_with_lines = file.splits.size() == 1 && known(file.splits.front()) && file.splits.front().kept == SplitStep::Kept::all &&
                            !file.adds_prefix_space && std::ranges::all_of(file.added, plain);
    for (const std::vector<std::int32_t>* around : {&file.before, &file.after}) {
      for (const std::int32_t id : *around)
        TW_CHECK_INPUT(exists(id), origin, ": its post_processor puts id ", id, " around a text, which no token has.");
    }
  }

  bool exists(std::int32_t id) const { return id >= 0 && id < std::ssize(tokens) && tokens[static_cast<std::size_t>(id)].exists; }

  Token& place(std::int32_t id, std::string_view token, std::string_view origin) {
    const std::int64_t most = 2 * (std::ssize(file.vocabulary) + std::ssize(file.added)) + 1024;
    TW_CHECK_INPUT(id < most, origin, ": \"", printable(token), "\" has id ", id, ", far beyond its ", file.vocabulary.size(), " tokens.");
    if (id >= std::ssize(tokens)) tokens.resize(static_cast<std::size_t>(id) + 1);
    return tokens[static_cast<std::size_t>(id)];
  }

  void add_vocabulary(std::unordered_map<std::string_view, std::int32_t>& ids, std::string_view origin) {
    for (const auto& [letters, id] : file.vocabulary) {
      Token& token = place(id, letters, origin);
      TW_CHECK_INPUT(!token.exists, origin, ": two tokens have id ", id, ", the second \"", printable(letters), "\".");
      std::optional<std::string> bytes = bytes_of_letters(letters);
      if (bytes) by_bytes.emplace(*bytes, id);
      if (bytes && bytes->size() == 1) of_byte[static_cast<unsigned char>(bytes->front())] = id;
      token = {.text = bytes ? *std::move(bytes) : letters, .exists = true};
      ids.emplace(letters, id);
    }
    for (std::size_t byte = 0; byte < of_byte.size(); ++byte) {
      TW_CHECK_INPUT(of_byte[byte] != kNoId || !in_utf8(byte), origin, ": its vocabulary has no token for byte ", byte,
                     ", so some text has no ids; byte-level BPE has all 256, as trainers make it with ByteLevel's alphabet.");
    }
  }

  void add_merges(const std::unordered_map<std::string_view, std::int32_t>& ids, std::string_view origin) {
    std::int32_t rank = 0;
    for (const auto& [left, right] : file.merges) {
      const std::string both = left + right;
      const auto found = [&](const std::string& token) {
        const auto at = ids.find(token);
        TW_CHECK_INPUT(at != ids.end(), origin, ": its merge ", rank + 1, " takes \"", printable(token),
                       "\", which is not in its vocabulary.");
        return at->second;
      };
      const std::int32_t first = found(left), second = found(right);
      merges[merge_key(first, second)] = {.rank = rank, .result = found(both)};
      ++rank;
    }
  }

  void add_added_tokens(const std::unordered_map<std::string_view, std::int32_t>& ids, std::string_view origin) {
    for (const AddedToken& added : file.added) {
      const auto known = ids.find(added.content);
      TW_CHECK_INPUT(known == ids.end() || known->second == added.id, origin, ": the added token \"", printable(added.content),
                     "\" has id ", added.id, ", and ", known == ids.end() ? 0 : known->second, " in the vocabulary.");
      Token& token = place(added.id, added.content, origin);
      TW_CHECK_INPUT(!token.exists || known != ids.end(), origin, ": two tokens have id ", added.id, ", the second \"",
                     printable(added.content), "\".");
      std::optional<std::string> bytes = bytes_of_letters(added.content);
      token = {.text = bytes ? *std::move(bytes) : added.content, .exists = true, .special = added.special};
      const bool changed = added.normalized && file.nfc;
      (added.normalized ? normalized : as_they_stand).add(added, changed ? nfc(added.content) : added.content);
    }
    as_they_stand.finish();
    normalized.finish();
  }

  // Adds the ids of added tokens; what lies between them goes to `on_text`.
  template <class OnText>
  void cut_at_tokens(const TokenFinder& finder, std::string_view text, std::vector<std::int32_t>& ids, OnText&& on_text) const {
    std::size_t told = 0, from = 0;
    while (const auto found = finder.find(text, from)) {
      from = found->end;
      std::size_t begin = found->begin, end = found->end;
      if (found->token->strips_left) begin = white_space_before(text, begin);
      if (found->token->strips_right) end = white_space_behind(text, end);
      if (begin > told) on_text(text.substr(told, begin - told));
      ids.push_back(found->token->id);
      told = std::max(told, end);
    }
    if (told < text.size()) on_text(text.substr(told));
  }

  static void split_piece(const Step& step, std::string_view piece, Pieces& out) {
    std::size_t at = 0;
    while (at < piece.size()) {
      const std::optional<SplitPattern::Match> match = step.pattern.find(piece, at);
      const std::size_t begin = match ? match->begin : piece.size();
      if (begin > at && step.kept == SplitStep::Kept::all) out.push_back(piece.substr(at, begin - at));
      if (!match) return;
      out.push_back(piece.substr(begin, match->end - begin));
      at = match->end;
    }
  }

  void add_text(std::string_view text, std::vector<std::int32_t>& ids) const {
    std::deque<std::string> spaced;  // pieces that a space was put before
    Pieces pieces = {text}, next;
    for (std::size_t i = 0; i <= steps.size(); ++i) {
      if (file.adds_prefix_space && i == file.splits_before_prefix) {
        for (std::string_view& piece : pieces) {
          if (!piece.starts_with(' ')) piece = spaced.emplace_back(" " + std::string(piece));
        }
      }
      if (i == steps.size()) break;
      next.clear();
      for (const std::string_view piece : pieces) split_piece(steps[i], piece, next);
      std::swap(pieces, next);
    }
    for (const std::string_view piece : pieces) add_word(piece, ids);
  }

  void add_word(std::string_view word, std::vector<std::int32_t>& ids) const {
    if (word.size() == 1 || file.ignores_merges) {
      if (const auto whole = by_bytes.find(word); whole != by_bytes.end()) {
        ids.push_back(whole->second);
        return;
      }
    }
    merge_word(word, ids);
  }

  struct Symbol {
    std::int32_t id, previous, next;
  };
  struct Candidate {
    std::int32_t rank, at, result;
    bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };

  // Of all pairs the one merged first in training is merged first, of equal ones the leftmost.
  void merge_word(std::string_view word, std::vector<std::int32_t>& ids) const {
    thread_local std::vector<Symbol> symbols;
    thread_local std::vector<Candidate> queue;
    symbols.clear();
    queue.clear();
    const auto size = static_cast<std::int32_t>(word.size());
    for (std::int32_t i = 0; i < size; ++i) {
      symbols.push_back({.id = of_byte[static_cast<unsigned char>(word[static_cast<std::size_t>(i)])],
                         .previous = i - 1,
                         .next = i + 1 < size ? i + 1 : kNoId});
    }
    const auto symbol = [&](std::int32_t at) -> Symbol& { return symbols[static_cast<std::size_t>(at)]; };
    const auto merge_at = [&](std::int32_t at) {
      const auto found = merges.find(merge_key(symbol(at).id, symbol(symbol(at).next).id));
      return found == merges.end() ? nullptr : &found->second;
    };
    const auto offer = [&](std::int32_t at) {
      if (at == kNoId || symbol(at).next == kNoId) return;
      if (const Merge* merge = merge_at(at)) {
        queue.push_back({.rank = merge->rank, .at = at, .result = merge->result});
        std::push_heap(queue.begin(), queue.end());
      }
    };
    for (std::int32_t i = 0; i < size; ++i) offer(i);
    while (!queue.empty()) {
      std::pop_heap(queue.begin(), queue.end());
      const Candidate best = queue.back();
      queue.pop_back();
      Symbol& left = symbol(best.at);
      if (left.id == kNoId || left.next == kNoId) continue;
      const Merge* merge = merge_at(best.at);
      if (merge == nullptr || merge->result != best.result) continue;  // one of the two has been merged with another
      Symbol& right = symbol(left.next);
      left.id = best.result;
      right.id = kNoId;
      left.next = right.next;
      if (left.next != kNoId) symbol(left.next).previous = best.at;
      offer(left.previous);
      offer(best.at);
    }
    for (const Symbol& kept : symbols) {
      if (kept.id != kNoId) ids.push_back(kept.id);
    }
  }
};

ByteLevelBpe ByteLevelBpe::parse(std::string_view json, std::string_view origin) {
  return ByteLevelBpe(std::make_shared<const Model>(read_tokenizer_json(json, origin), origin));
}

ByteLevelBpe ByteLevelBpe::load(const std::filesystem::path& path) { return parse(read_file(path, kMaxJsonBytes), path.string()); }

std::int64_t ByteLevelBpe::vocabulary() const { return std::ssize(model_->tokens); }

bool ByteLevelBpe::has(std::int32_t id) const { return model_->exists(id); }

std::optional<std::int32_t> ByteLevelBpe::find(std::string_view text) const {
  for (const AddedToken& added : model_->file.added) {
    if (added.content == text) return added.id;
  }
  const auto found = model_->by_bytes.find(text);
  return found == model_->by_bytes.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> ByteLevelBpe::facts() const {
  const TokenizerJson& file = model_->file;
  const auto special = std::ranges::count_if(file.added, &AddedToken::special);
  std::vector<std::string> facts = {concat(file.vocabulary.size(), " tokens and ", file.merges.size(), " merges",
                                           file.ignores_merges ? ", where a whole word that is a token needs no merge" : ""),
                                    concat(file.added.size(), " added tokens, ", special, " of them special")};
  facts.emplace_back(file.nfc ? "text is normalized (NFC)" : "text is not normalized");
  for (const SplitStep& split : file.splits) facts.push_back(concat("words are cut by ", split.pattern));
  if (file.adds_prefix_space) facts.emplace_back("a space is put before text that begins with none");
  if (!file.before.empty() || !file.after.empty())
    facts.push_back(concat("special ids are put around a text: ", file.before.size(), " before it, ", file.after.size(), " behind"));
  return facts;
}

const std::vector<std::int32_t>& ByteLevelBpe::before() const { return model_->file.before; }

const std::vector<std::int32_t>& ByteLevelBpe::behind() const { return model_->file.after; }

std::string_view ByteLevelBpe::first_part(std::string_view text, std::size_t limit) const {
  if (text.size() <= limit || !model_->ends_words_with_lines) return text;
  const auto in = [&](std::size_t at, char first, char last) { return text[at] >= first && text[at] <= last; };
  // Behind a line feed that a visible character precedes and a letter follows.
  const auto can_end = [&](std::size_t at) {
    return at >= 2 && at < text.size() && text[at - 1] == '\n' && in(at - 2, '!', '~') && (in(at, 'a', 'z') || in(at, 'A', 'Z'));
  };
  std::size_t end = limit;
  while (end > 0 && !can_end(end)) --end;
  if (end == 0) {
    for (end = limit; end < text.size() && !can_end(end);) ++end;
  }
  return text.substr(0, end);
}

std::vector<std::int32_t> ByteLevelBpe::encode(std::string_view text, SpecialIds around) const {
  const std::optional<std::size_t> invalid = find_invalid_utf8(text);
  TW_CHECK_INPUT(!invalid, "byte ", *invalid + 1,
                 " of the text is not UTF-8, which a byte-level BPE of a tokenizer.json needs; convert it.");
  TW_CHECK_INPUT(text.size() < (std::size_t{1} << 31), "a text of ", text.size(), " bytes is too long to encode at once; split it.");
  const Model& model = *model_;
  std::vector<std::int32_t> ids;
  if (around == SpecialIds::kept) ids = model.file.before;
  model.cut_at_tokens(model.as_they_stand, text, ids, [&](std::string_view between) {
    const std::string composed = model.file.nfc ? nfc(between) : std::string();
    model.cut_at_tokens(model.normalized, model.file.nfc ? composed : between, ids,
                        [&](std::string_view words) { model.add_text(words, ids); });
  });
  if (around == SpecialIds::kept) ids.insert(ids.end(), model.file.after.begin(), model.file.after.end());
  return ids;
}

std::string ByteLevelBpe::normalized(std::string_view text) const { return model_->file.nfc ? nfc(text) : std::string(text); }

std::string ByteLevelBpe::decode(std::span<const std::int32_t> ids, SpecialIds special) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (!model_->exists(id)) continue;
    const Model::Token& token = model_->tokens[static_cast<std::size_t>(id)];
    if (!token.special || special == SpecialIds::kept) text += token.text;
  }
  return text;
}

}  // namespace tilewave

#include "framework/data/streamed_text.h"

#include <gtest/gtest.h>
#include <optional>
#include <string_view>

#include "framework/data/number_names.h"
#include "framework/tensor/random.h"

namespace tilewave {
namespace {

// The text of ids that come in any portions is the text of all of them.
void expect_streamed(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  Random random(7);
  StreamedText text(tokenizer);
  std::string streamed;
  for (std::size_t first = 0; first < ids.size();) {
    const std::size_t count = std::min<std::size_t>(ids.size() - first, random.below(4));
    streamed += text.add(std::span(ids).subspan(first, count));
    first += count;
  }
  EXPECT_EQ(streamed + text.rest(), tokenizer.decode(ids));
}

TEST(StreamedText, OfBytes) {
  const Tokenizer tokenizer;
  std::string words;
  for (int i = 0; i < 200; ++i) words += "zwölf Löwen, 七匹の狼 ";
  expect_streamed(tokenizer, tokenizer.encode(words));
  Random random(3);
  std::vector<std::int32_t> noise(3'000);  // bytes that are no characters too
  for (std::int32_t& id : noise) id = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(tokenizer.vocabulary())));
  expect_streamed(tokenizer, noise);
}

TEST(StreamedText, OfPieces) {
  for (const TextForm form : {TextForm::sentences, TextForm::document}) {
    const Tokenizer tokenizer(BpeTraining{.vocabulary = 120, .form = form, .lines = [] {
                                            return [line = 0, name = std::string()]() mutable -> std::optional<std::string_view> {
                                              if (line == 400) return std::nullopt;
                                              name = german_name(997 * ++line);
                                              return name;
                                            };
                                          }});
    Random random(5);
    std::vector<std::int32_t> ids(2'000);
    for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(tokenizer.vocabulary())));
    expect_streamed(tokenizer, ids);

    // A special id has no text: it stays before no space in the place of a word.
    const std::vector<std::int32_t> words = tokenizer.encode("ein zwei drei vier");
    std::vector<std::int32_t> many;
    while (many.size() < 300) {
      many.insert(many.end(), words.begin(), words.end());
      many.push_back(kPadId);
    }
    StreamedText text(tokenizer);
    std::string streamed;
    for (const std::int32_t id : many) streamed += text.add(std::span(&id, 1));
    EXPECT_EQ(streamed + text.rest(), tokenizer.decode(many));
  }
}

}  // namespace
}  // namespace tilewave

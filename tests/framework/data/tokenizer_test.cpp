// Round trips, the same model for the same text, and a sentence for each way to ask in vain.
#include "framework/data/tokenizer.h"

#include <gtest/gtest.h>

#include "framework/data/number_names.h"
#include "framework/random.h"
#include "tests/framework/data/scratch.h"

namespace tilewave {
namespace {

Tokenizer train(const std::vector<std::string>& lines, std::int64_t vocabulary, TextForm form) {
  return Tokenizer(BpeTraining{
      .vocabulary = vocabulary, .form = form, .next_line = [&, next = std::size_t{0}]() mutable -> std::optional<std::string_view> {
        if (next == lines.size()) return std::nullopt;
        return lines[next++];
      }});
}

std::vector<std::string> names(std::int32_t first, std::int32_t count) {
  std::vector<std::string> lines;
  for (std::int32_t i = 0; i < count; ++i) {
    lines.push_back(english_name((first + 7919 * i) % kNumberNames));
    lines.push_back(german_name((first + 7919 * i) % kNumberNames));
  }
  return lines;
}

TEST(BytesTokenizer, TakesAnyBytesAndGivesThemBack) {
  const Tokenizer tokenizer;
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  const std::vector<std::int32_t> ids = tokenizer.encode(every);
  ASSERT_EQ(ids.size(), 256u);
  for (int byte = 0; byte < 256; ++byte) EXPECT_EQ(ids[static_cast<std::size_t>(byte)], 4 + byte);
  EXPECT_EQ(tokenizer.decode(ids), every);
  EXPECT_EQ(tokenizer.vocabulary(), 260);
  EXPECT_TRUE(tokenizer.model().empty());
}

TEST(BytesTokenizer, NamesItsPieces) {
  const Tokenizer tokenizer;
  EXPECT_EQ(tokenizer.piece(kBeginId), "<bos>");
  EXPECT_EQ(tokenizer.piece(4 + 'a'), "a");
  EXPECT_EQ(tokenizer.piece(4 + '\n'), "<0x0A>");
  EXPECT_EQ(tokenizer.piece(4 + 0xFF), "<0xFF>");
  EXPECT_EQ(tokenizer.piece(260), "<beyond the tokenizer>");
}

TEST(BpeTokenizer, GivesNumberNamesBack) {
  const Tokenizer tokenizer = train(names(0, 500), 128, TextForm::sentences);
  EXPECT_EQ(tokenizer.kind(), TokenizerKind::bpe);
  EXPECT_EQ(tokenizer.vocabulary(), 128);
  for (const std::string& name : names(500'000, 300)) {
    const std::vector<std::int32_t> ids = tokenizer.encode(name);
    EXPECT_LT(ids.size(), name.size() / 2);
    EXPECT_EQ(tokenizer.decode(ids), name);
    for (const std::int32_t id : ids) EXPECT_TRUE(id >= kSpecialIds && id < 128);
  }
}

TEST(BpeTokenizer, TreatsSentencesAsWordsAndSpaces) {
  const Tokenizer tokenizer = train({"one two three", "three two one", "two"}, 24, TextForm::sentences);
  EXPECT_EQ(tokenizer.encode("  one\ttwo   three "), tokenizer.encode("one two three"));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(" one\ttwo")), "one two");
  EXPECT_TRUE(tokenizer.encode("").empty());
}

TEST(BpeTokenizer, KeepsEveryCharacterOfADocument) {
  const std::vector<std::string> lines = {"\tto be, or not to be,", "  that is the question:", "", "straße und brot"};
  const Tokenizer tokenizer = train(lines, 50, TextForm::document);
  const std::string document = "\n  to be\t\n\nor  not\n straße ";
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(document)), document);
  std::vector<std::int32_t> joined;
  for (const std::string_view part : {"\n  to be\t\n\n", "or  not\n", " straße "}) {
    const std::vector<std::int32_t> ids = tokenizer.encode(part);
    joined.insert(joined.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(joined, tokenizer.encode(document));
}

TEST(BpeTokenizer, LearnsTheSameModelFromTheSameText) {
  EXPECT_EQ(train(names(0, 300), 100, TextForm::sentences).model(), train(names(0, 300), 100, TextForm::sentences).model());
  EXPECT_NE(train(names(0, 300), 100, TextForm::sentences).model(), train(names(0, 300), 101, TextForm::sentences).model());
}

TEST(BpeTokenizer, LearnsFromLinesOfAMegabyte) {
  std::string words, word(100'000, 'x');
  Random random(1);
  while (words.size() < 1'000'000) words += "ab cd" + std::to_string(random.below(100)) + " ";
  const Tokenizer tokenizer = train({words, word, "", "end é"}, 30, TextForm::document);
  for (const std::string& text : {words.substr(0, 5'000), word, std::string("é")})
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
}

TEST(BpeTokenizer, SaysUnknownForWhatItNeverSaw) {
  const Tokenizer tokenizer = train({"abc abc abc"}, 9, TextForm::sentences);
  const std::vector<std::int32_t> ids = tokenizer.encode("a€b");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), kUnknownId), 1);
  EXPECT_EQ(tokenizer.decode(ids),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{kBeginId, 4'000'000, -7, kEndId, kPadId}), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(BpeTokenizer, SurvivesAFile) {
  const Scratch scratch;
  const Tokenizer tokenizer = train(names(0, 300), 100, TextForm::sentences);
  tokenizer.save(scratch.folder() / "tokenizer.model");
  const Tokenizer loaded = Tokenizer::load(scratch.folder() / "tokenizer.model");
  EXPECT_EQ(loaded.model(), tokenizer.model());
  EXPECT_EQ(loaded.encode("neunzehn hundred"), tokenizer.encode("neunzehn hundred"));
  const Tokenizer document = train({"a b", "b a"}, 9, TextForm::document);
  document.save(scratch.folder() / "document.model");
  EXPECT_EQ(Tokenizer::load(scratch.folder() / "document.model").decode(document.encode(" a\nb")), " a\nb");
  EXPECT_THROW(tokenizer.save(scratch.folder() / "nowhere" / "tokenizer.model"), Error);
  EXPECT_THROW(Tokenizer().save(scratch.folder() / "bytes.model"), Error);
}

TEST(BpeTokenizer, SaysWhichVocabularyWouldWork) {
  const std::string small = input_error([] { train(names(0, 300), 20, TextForm::sentences); });
  EXPECT_TRUE(says(small, {"data.tokenizer_vocabulary = 20", "too small", "at least "}));
  const std::int64_t least = std::stoll(small.substr(small.find("at least ") + 9));
  EXPECT_EQ(train(names(0, 300), least, TextForm::sentences).vocabulary(), least);
  EXPECT_TRUE(says(input_error([&] { train(names(0, 300), least - 1, TextForm::sentences); }), {"too small"}));

  const std::string large = input_error([] { train({"one two three"}, 9'000, TextForm::sentences); });
  EXPECT_TRUE(says(large, {"data.tokenizer_vocabulary = 9000", "too large", "at most "}));
  const std::int64_t most = std::stoll(large.substr(large.find("at most ") + 8));
  EXPECT_EQ(train({"one two three"}, most, TextForm::sentences).vocabulary(), most);

  for (const std::int64_t none : {-1, 0, 4}) {
    EXPECT_TRUE(says(input_error([&] { train(names(0, 300), none, TextForm::sentences); }), {"leaves no room"}));
  }
  EXPECT_TRUE(says(input_error([] { train({"", "  "}, 20, TextForm::sentences); }), {"too large", "at most 4 pieces"}));
}

TEST(BpeTokenizer, RefusesCorruptModels) {
  const Scratch scratch;
  const std::string model = train(names(0, 300), 100, TextForm::sentences).model();
  const auto load = [&](std::string_view content) { return input_error([&] { Tokenizer::load(scratch.write("broken.model", content)); }); };
  EXPECT_TRUE(says(load("this is no model"), {"broken.model", "not a SentencePiece model", "run folder"}));
  EXPECT_TRUE(says(load(model.substr(0, model.size() / 2)), {"broken.model"}));
  EXPECT_TRUE(says(load(""), {"broken.model", "empty"}));
  EXPECT_TRUE(says(input_error([&] { Tokenizer::load(scratch.folder() / "absent.model"); }), {"absent.model", "does not exist"}));
}

TEST(BpeTokenizer, RefusesBytesThatAreNoText) {
  const Tokenizer tokenizer = train(names(0, 300), 100, TextForm::sentences);
  EXPECT_TRUE(says(input_error([&] { tokenizer.encode("abc\xFFz"); }), {"byte 4", "UTF-8"}));
}

}  // namespace
}  // namespace tilewave

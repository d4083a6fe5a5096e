// Round trips, the same model for the same text, and a sentence for each way to ask in vain.
#include "framework/data/tokenizer.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "framework/data/number_names.h"
#include "framework/data/prepared_text.h"
#include "framework/data/reserved_characters.h"
#include "framework/tensor/random.h"
#include "tests/framework/data/scratch.h"

namespace tilewave {
namespace {

Tokenizer train(const std::vector<std::string>& lines, std::int64_t vocabulary, TextForm form) {
  return Tokenizer(BpeTraining{.vocabulary = vocabulary, .form = form, .lines = [&] {
                                 return [&, next = std::size_t{0}]() mutable -> std::optional<std::string_view> {
                                   if (next == lines.size()) return std::nullopt;
                                   return lines[next++];
                                 };
                               }});
}

// A tokenizer of these lines, with room for a few pieces beside the characters.
Tokenizer trained_on(const std::vector<std::string>& lines, TextForm form) {
  std::set<std::string_view> characters;
  for (std::string_view rest : lines) {
    for (; !rest.empty(); rest.remove_prefix(character_bytes(rest))) characters.insert(rest.substr(0, character_bytes(rest)));
  }
  return train(lines, kSpecialIds + 3 + std::ssize(characters), form);
}

// Nothing of the text is unknown, and it comes back whole.
void expect_known(const Tokenizer& tokenizer, const std::string& text) {
  const std::vector<std::int32_t> ids = tokenizer.encode(text);
  EXPECT_EQ(std::ranges::count(ids, kUnknownId), 0) << text;
  EXPECT_FALSE(tokenizer.find_unknown(text)) << text;
  EXPECT_EQ(tokenizer.decode(ids), text);
}

const std::string kNul(1, '\0');

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

// Characters and words that SentencePiece keeps for itself, what stands in for them, and every other kind that somebody may call special.
TEST(BpeTokenizer, KnowsEveryCharacterOfItsTrainingText) {
  const std::vector<std::string> specials = {"▅",
                                             "▁",
                                             "▁▂▃▅▇█",
                                             kNul,
                                             "\uFDD0",
                                             "\uFDD1\uFDD2\uFDD3",
                                             "\U000F0000",
                                             "\uE000",
                                             "\uFFFD",
                                             "\uFFFE",
                                             "\uFEFF",
                                             "\r",
                                             "\x01\x1B\x7F",
                                             "\u0085",
                                             "\u00A0\u3000\u200B",
                                             "\u2028",
                                             "e\u0301é",
                                             "\U0010FFFF",
                                             "\u2047",
                                             "<unk>",
                                             "<s>",
                                             "</s>",
                                             "<pad>",
                                             "<bos>",
                                             "<0x0A>",
                                             "\"",
                                             ",",
                                             "\",\""};
  for (const TextForm form : {TextForm::sentences, TextForm::document}) {
    for (const std::string& special : specials) {
      const std::vector<std::string> lines = {"net disk " + special + " alpha", "alpha " + special + special, "disk net"};
      const Tokenizer tokenizer = trained_on(lines, form);
      for (const std::string& line : lines) expect_known(tokenizer, line);
      expect_known(tokenizer, special + " net" + special);
    }
    std::vector<std::string> all = {"every one of them"};
    for (const std::string& special : specials) all.front() += " " + special;
    expect_known(trained_on(all, form), all.front());
  }
}

TEST(BpeTokenizer, LearnsFromLinesWithReservedCharacters) {
  std::vector<std::string> lines, plain;
  for (int i = 0; i < 40; ++i) {
    lines.push_back("gamma beta load " + std::string(i % 3 == 0 ? "delta" : "cpu") + " ▅");
    plain.push_back("gamma beta load " + std::string(i % 3 == 0 ? "delta" : "cpu") + " █");
  }
  const Tokenizer tokenizer = train(lines, 40, TextForm::document), like_it = train(plain, 40, TextForm::document);
  EXPECT_EQ(tokenizer.encode("gamma load ▅").size(), like_it.encode("gamma load █").size()) << "no line was left out";
  const std::vector<std::string> tags = {"a <s> b", "<s> c"}, other_tags = {"a <t> b", "<t> c"};
  EXPECT_EQ(train(tags, 16, TextForm::document).encode("<s>").size(), train(other_tags, 16, TextForm::document).encode("<t>").size())
      << "a special id's name is a word like any other";
  std::string long_line;
  while (long_line.size() < 9'000) long_line += kNul + kNul + "ab" + kNul;  // three times as long as SentencePiece sees it
  expect_known(train({long_line, "xyz"}, 16, TextForm::document), long_line + "xyz");
}

// A character as rare as this is beyond what SentencePiece's coverage, a number of 24 bits, can tell from none.
TEST(BpeTokenizer, KnowsTheRarestCharacterOfALongText) {
  const std::string line(4'000, 'a');
  const std::int64_t many = (std::int64_t{1} << 25) / std::ssize(line) + 20;
  const std::string last = "a\"";  // a quote, which means something in the lists that SentencePiece is given
  const Tokenizer tokenizer(BpeTraining{.vocabulary = 9, .form = TextForm::document, .lines = [&] {
                                          return [&, next = std::int64_t{0}]() mutable -> std::optional<std::string_view> {
                                            if (next > many) return std::nullopt;
                                            return next++ < many ? line : last;
                                          };
                                        }});
  expect_known(tokenizer, last + "\"aaa");
}

TEST(BpeTokenizer, TakesNothingForAReservedCharacter) {
  const Tokenizer tokenizer = trained_on({"ab ba", "ba▁b"}, TextForm::document);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a▁b a")), "a▁b a") << "U+2581 is no space";
  EXPECT_NE(tokenizer.encode("a▁b"), tokenizer.encode("a b"));
  for (const std::string& unseen :
       {std::string("▅"), kNul, std::string("\uFDD0"), std::string("\uFDD1"), std::string("\uFDD2"), std::string("é")}) {
    EXPECT_EQ(tokenizer.encode("a" + unseen), (std::vector<std::int32_t>{tokenizer.encode("a").front(), kUnknownId})) << unseen;
    EXPECT_EQ(tokenizer.find_unknown("ab" + unseen), 2u);
  }
  std::set<std::string> pieces;
  for (std::int32_t id = 0; id < tokenizer.vocabulary(); ++id) pieces.insert(tokenizer.piece(id));
  EXPECT_TRUE(pieces.contains("▁"));
  EXPECT_TRUE(pieces.contains("<U+2581>"));
}

// Models without a mark, which earlier runs have stored, are what they were: U+2581 is a space to them.
TEST(BpeTokenizer, EncodesAsBeforeWithAModelThatHasNoMark) {
  const Scratch scratch;
  const Tokenizer marked = train(names(0, 300), 100, TextForm::sentences);
  EXPECT_GT(marked.model().size(), marked.learned().size());
  const Tokenizer unmarked = Tokenizer::load(scratch.write("tokenizer.model", marked.learned()));
  EXPECT_EQ(unmarked.model(), marked.learned());
  for (const std::string& name : names(5'000, 50)) EXPECT_EQ(unmarked.encode(name), marked.encode(name));
  EXPECT_EQ(unmarked.encode("one▁hundred"), marked.encode("one hundred"));
  EXPECT_EQ(std::ranges::count(marked.encode("one▁hundred"), kUnknownId), 1);
  EXPECT_EQ(std::ranges::count(unmarked.encode("one▅"), kUnknownId), 1);
}

TEST(BpeTokenizer, RefusesAMarkItDoesNotUnderstand) {
  const Scratch scratch;
  const std::string model = train(names(0, 300), 100, TextForm::sentences).model();
  std::string later = model, cut = model;
  later.replace(later.rfind("tilewave/1"), 10, "tilewave/7");
  EXPECT_TRUE(says(input_error([&] { Tokenizer::load(scratch.write("later.model", later)); }), {"version 7", "newer"}));
  cut.replace(cut.size() - 3, 3, "\xFF\xFF\xFF");
  EXPECT_TRUE(says(input_error([&] { Tokenizer::load(scratch.write("cut.model", cut)); }), {"damaged"}));
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
  EXPECT_TRUE(says(load("this is no model"), {"broken.model", "is no tokenizer", "run folder"}));
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

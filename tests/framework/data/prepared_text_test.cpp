// What is done to text before a tokenizer sees it, and that it is the same whichever way the text comes.
#include "framework/data/prepared_text.h"

#include <gtest/gtest.h>
#include <sstream>

#include "tests/framework/data/scratch.h"

namespace tilewave {
namespace {

constexpr TokenizerKind kBytes = TokenizerKind::bytes, kBpe = TokenizerKind::bpe;
const std::string kMark = "\xEF\xBB\xBF";

TEST(PreparedText, DropsAMarkAtTheBeginningAlone) {
  for (const TextForm form : {TextForm::sentences, TextForm::document}) {
    for (const TokenizerKind kind : {kBytes, kBpe}) {
      EXPECT_EQ(prepared_text(kMark + "text", kind, form), "text");
      EXPECT_EQ(prepared_text("t" + kMark, kind, form), "t" + kMark);
      EXPECT_EQ(prepared_text(kMark, kind, form), "");
    }
  }
}

TEST(PreparedText, EndsLinesWithLfAndLeavesOtherCarriageReturns) {
  for (const auto& [before, after] : {std::pair{"", ""}, std::pair{"a\r\nb\r\n", "a\nb\n"}, std::pair{"a\rb\r\r\n\r", "a\rb\r\n\r"}}) {
    EXPECT_EQ(prepared_text(before, kBpe, TextForm::document), after);
    EXPECT_EQ(prepared_text(before, kBpe, TextForm::sentences), after);
    EXPECT_EQ(prepared_text(before, kBytes, TextForm::sentences), after);
    EXPECT_EQ(prepared_text(before, kBytes, TextForm::document), before) << "every byte counts";
  }
}

TEST(PreparedText, LeavesWhatElseTextMayHold) {
  for (const std::string& text : {std::string("a\0b", 3), std::string("e\xCC\x81 and \xC3\xA9"), std::string("\x1B[31m\v\f\x7F"),
                                  std::string("\xC2\xA0\xE3\x80\x80\xE2\x80\x8B"), std::string("▁▅ \xEF\xB7\x90")}) {
    for (const TextForm form : {TextForm::sentences, TextForm::document}) EXPECT_EQ(prepared_text(text, kBpe, form), text);
  }
}

TEST(PreparedFile, SaysWhatIsNoText) {
  const Scratch scratch;
  EXPECT_EQ(prepared_file(scratch.write("marked", kMark + "a\r\nb"), kBpe, TextForm::document), "a\nb");
  EXPECT_TRUE(says(input_error([&] { prepared_file(scratch.write("mark", kMark), kBytes, TextForm::document); }), {"byte order mark"}));
  EXPECT_TRUE(says(input_error([&] { prepared_file(scratch.write("latin1", "a\r\ngr\xFC\n"), kBpe, TextForm::document); }),
                   {"latin1", "line 2", "byte 3", "UTF-8"}));
}

TEST(SplitLines, EndsThemAtLfAlone) {
  using Lines = std::vector<std::string_view>;
  EXPECT_EQ(split_lines(""), Lines{});
  EXPECT_EQ(split_lines("a"), Lines{"a"});
  EXPECT_EQ(split_lines("a\n"), Lines{"a"});
  EXPECT_EQ(split_lines("a\nb\rc\n\n\r\nd"), (Lines{"a", "b\rc", "", "\r", "d"}));
  const std::string_view nul("a\0b\n", 4);
  EXPECT_EQ(split_lines(nul), (Lines{std::string_view("a\0b", 3)}));
  const std::string line(1 << 20, 'x');
  EXPECT_EQ(split_lines(line + "\n" + line).size(), 2u);
}

// A file of sentences and the same bytes on standard input are the same lines.
TEST(LineReader, ReadsTheLinesThatAFileHas) {
  const Scratch scratch;
  for (const std::string& text :
       {kMark + "one\r\ntwo\n\nfour\r\r\nfive\r", std::string("a\0b\n\n", 5), std::string("\r\n"), "a\n" + kMark + "b", std::string("x")}) {
    const std::string prepared = prepared_file(scratch.write("lines", text), kBpe, TextForm::sentences);
    std::istringstream stream(text);
    LineReader reader(stream);
    for (const std::string_view line : split_lines(prepared)) EXPECT_EQ(reader.next(), std::string(line)) << text;
    EXPECT_FALSE(reader.next()) << text;
    EXPECT_EQ(reader.number(), std::ssize(split_lines(prepared)));
  }
}

}  // namespace
}  // namespace tilewave

// Files as people have them: NUL, bytes that are no text, and what is no file at all.
#include "framework/io/text_file.h"

#include <gtest/gtest.h>

#include "tests/framework/data/scratch.h"

namespace tilewave {
namespace {

TEST(ReadText, GivesBytesAsTheyAre) {
  const Scratch scratch;
  const std::string bytes("a\0\xFF\r\n\n z", 8);
  EXPECT_EQ(read_text(scratch.write("bytes", bytes)), bytes);
  EXPECT_EQ(read_text(scratch.write("marked", "\xEF\xBB\xBFtext")), "\xEF\xBB\xBFtext");
}

TEST(ReadText, NamesWhatItCannotRead) {
  const Scratch scratch;
  EXPECT_TRUE(says(input_error([&] { read_text(scratch.folder() / "absent"); }), {"absent", "does not exist"}));
  EXPECT_TRUE(says(input_error([&] { read_text(scratch.folder()); }), {"is a folder"}));
  EXPECT_TRUE(says(input_error([&] { read_text("/dev/zero"); }), {"/dev/zero", "not a regular file"}));
  EXPECT_TRUE(says(input_error([&] { read_text(scratch.write("empty", "")); }), {"empty", "is empty"}));
}

TEST(ReadText, SaysWhyAFileIsClosedToIt) {
  const Scratch scratch;
  const std::filesystem::path path = scratch.write("closed", "text");
  std::filesystem::permissions(path, std::filesystem::perms::none);
  const bool root = ::geteuid() == 0;  // who passes every permission check
  if (root) {
    ASSERT_EQ(::seteuid(65'534), 0);
  }
  const std::string message = input_error([&] { read_text(path); });
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_TRUE(says(message, {"closed", "cannot be opened", "Permission denied"}));
}

TEST(WholeCharacters, NeverCutsOne) {
  const std::string text = "aé€😀z";  // 1, 2, 3, 4 and 1 bytes
  const std::size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
  for (std::size_t limit = 1; limit <= 12; ++limit) EXPECT_EQ(whole_characters(text, limit).size(), ends[limit]) << limit;
  const std::string binary(10, '\x80');
  EXPECT_GE(whole_characters(binary, 8).size(), 5u) << "bytes that are no text are cut near the limit";
}

TEST(FinishedCharacters, HoldBackTheOneThatHasOnlyBegun) {
  const std::string text = "aé€😀z";  // 1, 2, 3, 4 and 1 bytes
  const std::size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};
  for (std::size_t length = 0; length <= text.size(); ++length) {
    EXPECT_EQ(finished_characters(std::string_view(text).substr(0, length)).size(), ends[length]) << length;
  }
  for (const char* const whole : {"\x80", "a\xBF", "\xC3\xA9\xA9", "\xE2\x82\xAC\x80", "\x80\x80\x80\x80\x80"}) {
    EXPECT_EQ(finished_characters(whole), whole) << "bytes that continue nothing wait for nothing";
  }
}

TEST(FirstPart, EndsBehindTheLastSeparatorInReach) {
  EXPECT_EQ(first_part("ab cd ef", 100, ' '), "ab cd ef");
  EXPECT_EQ(first_part("ab cd ef", 6, ' '), "ab cd ");
  EXPECT_EQ(first_part("ab cd ef", 5, ' '), "ab ");
  EXPECT_EQ(first_part("abcdef", 4, ' '), "abcd");
  EXPECT_EQ(first_part("€€€", 4, ' '), "€");
}

TEST(Utf8, KnowsEveryWayToBeInvalid) {
  for (const std::string_view valid :
       {"", "plain", "é€😀", "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF", "\xEE\x80\x80", "\xE0\xA0\x80", "\xF0\x90\x80\x80"}) {
    EXPECT_FALSE(find_invalid_utf8(valid)) << valid;
  }
  for (const std::string_view invalid :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2z", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE2\x82", "\xE2\x28\xA1",
        "\xE2\x82z", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xF0\x9F\x98", "\xFE", "\xFF"}) {
    EXPECT_EQ(find_invalid_utf8(invalid), 0u);
    EXPECT_EQ(find_invalid_utf8("ab" + std::string(invalid) + "cd"), 2u);
  }
}

TEST(Utf8, NamesFileLineAndByte) {
  EXPECT_TRUE(says(input_error([] { check_utf8("good\nbad \xFF", "some.txt"); }), {"some.txt", "line 2", "byte 5", "UTF-8", "bytes"}));
  EXPECT_TRUE(says(input_error([] { check_utf8("\xFF", "some.txt"); }), {"line 1", "byte 1"}));
}

}  // namespace
}  // namespace tilewave

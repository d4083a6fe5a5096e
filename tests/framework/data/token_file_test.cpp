// Token files written and read back, and every way in which one can be wrong.
#include "framework/data/token_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>
#include <span>
#include <vector>

#include "tests/framework/data/scratch.h"

namespace tilewave {
namespace {

std::string header(std::int32_t magic, std::int32_t version, std::int32_t tokens) {
  std::array<std::int32_t, 256> words = {magic, version, tokens};
  std::string bytes(sizeof(words), '\0');
  std::memcpy(bytes.data(), words.data(), sizeof(words));
  return bytes;
}

std::string opening(const Scratch& scratch, std::string_view content) {
  return input_error([&] { TokenFile(scratch.write("tokens.bin", content), 1000); });
}

TEST(TokenFile, GivesBackWhatWasWritten) {
  const Scratch scratch;
  for (const std::int32_t largest : {65'535, 65'536}) {
    std::vector<std::int32_t> ids(100'000);
    std::iota(ids.begin(), ids.end(), 0);
    for (std::int32_t& id : ids) id = (id * 31) % largest;
    ids.back() = largest;
    const std::filesystem::path path = scratch.folder() / "tokens.bin";
    write_token_file(path, ids);
    EXPECT_EQ(std::filesystem::file_size(path), 1024 + ids.size() * (largest < 65'536 ? 2 : 4));
    EXPECT_FALSE(std::filesystem::exists(path.string() + ".partial"));
    const TokenFile file(path, largest + 1);
    EXPECT_EQ(file.size(), 100'000);
    std::vector<std::int32_t> all(ids.size()), some(12'345);
    file.read(0, all);
    EXPECT_EQ(all, ids);
    file.read(54'321, some);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), ids.begin() + 54'321));
    EXPECT_THROW(file.read(99'999, std::span(some).first(2)), Error);
    EXPECT_THROW(file.read(-1, std::span(some).first(1)), Error);
  }
}

TEST(TokenFile, ReadsTheBytesOfTheFormat) {
  const Scratch scratch;
  std::vector<std::int32_t> ids(2);
  TokenFile(scratch.write("short.bin", header(20240520, 1, 2) + std::string("\x07\x00\x34\x12", 4)), 50257).read(0, ids);
  EXPECT_EQ(ids, (std::vector<std::int32_t>{7, 0x1234}));
  TokenFile(scratch.write("wide.bin", header(20240801, 7, 2) + std::string("\x07\x00\x00\x00\x34\x12\x01\x00", 8)), 128'256).read(0, ids);
  EXPECT_EQ(ids, (std::vector<std::int32_t>{7, 0x11234}));
}

TEST(TokenFiles, FollowEachOtherInTheOrderOfTheirNames) {
  const Scratch scratch;
  std::vector<std::int32_t> all(1'000);
  std::iota(all.begin(), all.end(), 0);
  const auto part = [&](const char* name, std::size_t first, std::size_t count) {
    write_token_file(scratch.folder() / name, std::span(all).subspan(first, count));
  };
  part("train_002.bin", 301, 1), part("train_001.bin", 0, 301), part("train_010.bin", 302, 698), part("other.bin", 5, 10);
  const TokenFiles files(scratch.folder() / "train_*.bin", 1'000);
  EXPECT_EQ(files.size(), 1'000);
  for (const std::int64_t first : {0, 1, 299, 300, 301, 302, 303, 999}) {
    for (const std::int64_t count : {0, 1, 2, 3, 400}) {
      if (first + count > 1'000) continue;
      std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
      files.read(first, ids);
      EXPECT_TRUE(std::equal(ids.begin(), ids.end(), all.begin() + first)) << first << " " << count;
    }
  }
  std::vector<std::int32_t> two(2);
  EXPECT_THROW(files.read(999, two), Error);
  EXPECT_EQ(TokenFiles(scratch.folder() / "other.bin", 1'000).size(), 10);
  part("[1].bin", 0, 3);
  EXPECT_EQ(TokenFiles(scratch.folder() / "[1].bin", 1'000).size(), 3) << "a file of that name is no pattern";
  const std::string none = input_error([&] { TokenFiles(scratch.folder() / "test_*.bin", 1'000); });
  EXPECT_NE(none.find("test_*.bin"), std::string::npos) << none;
  write_token_file(scratch.folder() / "train_003.bin", std::vector<std::int32_t>{5000});
  const TokenFiles with_large(scratch.folder() / "train_*.bin", 1'000);
  EXPECT_NE(input_error([&] { with_large.read(301, two); }).find("train_003.bin"), std::string::npos);
}

TEST(TokenFile, RefusesWhatIsNone) {
  const Scratch scratch;
  EXPECT_TRUE(
      says(input_error([&] { TokenFile(scratch.folder() / "absent.bin", 10); }), {"absent.bin", "cannot be opened", "No such file"}));
  EXPECT_TRUE(says(input_error([&] { TokenFile(scratch.folder(), 10); }), {"not a regular file"}));
  EXPECT_TRUE(says(input_error([&] { TokenFile("/dev/zero", 10); }), {"/dev/zero", "not a regular file"}));
  EXPECT_TRUE(says(opening(scratch, ""), {"0 bytes", "header"}));
  EXPECT_TRUE(says(opening(scratch, std::string(1023, 'x')), {"1023 bytes", "1024"}));
  EXPECT_TRUE(says(opening(scratch, header(20240521, 1, 1) + "xx"), {"not a token file", "20240521", "20240520"}));
  EXPECT_TRUE(says(opening(scratch, header(20240520, 2, 1) + "xx"), {"version 2", "version 1"}));
  EXPECT_TRUE(says(opening(scratch, header(20240801, 1, 1) + "xxxx"), {"version 1", "version 7"}));
}

TEST(TokenFile, ComparesItsHeaderWithItsSize) {
  const Scratch scratch;
  EXPECT_TRUE(says(opening(scratch, header(20240520, 1, 3) + "xxxxx"), {"1029 bytes", "3 tokens", "1030", "truncated"}));
  EXPECT_TRUE(says(opening(scratch, header(20240801, 7, 3) + "xxxxxx"), {"1036", "truncated"}));
  EXPECT_TRUE(says(opening(scratch, header(20240520, 1, 1) + "xxx"), {"appended"}));
  EXPECT_TRUE(says(opening(scratch, header(20240520, 1, 0)), {"0 tokens"}));
  EXPECT_TRUE(says(opening(scratch, header(20240520, 1, -5)), {"-5 tokens"}));
  EXPECT_TRUE(says(opening(scratch, header(20240801, 7, 2'147'483'647)), {"2147483647 tokens", "8589935612"}));
}

TEST(TokenFile, NamesTheTokenBeyondTheVocabulary) {
  const Scratch scratch;
  std::vector<std::int32_t> ids(20'000, 5);
  ids[12'345] = 1'000;
  write_token_file(scratch.folder() / "tokens.bin", ids);
  const TokenFile file(scratch.folder() / "tokens.bin", 1'000);
  std::vector<std::int32_t> out(20'000);
  EXPECT_NO_THROW(file.read(0, std::span(out).first(12'345)));
  EXPECT_TRUE(says(input_error([&] { file.read(0, out); }), {"token 12345", "id 1000", "vocabulary of 1000", "model.vocabulary"}));
  const TokenFile wide(scratch.write("wide.bin", header(20240801, 7, 1) + "\xFF\xFF\xFF\xFF"), 1'000);
  EXPECT_TRUE(says(input_error([&] { wide.read(0, std::span(out).first(1)); }), {"id 4294967295"}));
}

TEST(TokenFile, ReadsBeyondFourGibibytes) {
  const Scratch scratch;
  const std::filesystem::path path = scratch.write("sparse.bin", header(20240801, 7, 1'100'000'000));
  const std::uintmax_t size = 1024 + std::uintmax_t{4} * 1'100'000'000;
  std::filesystem::resize_file(path, size);
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(size - 4));
    file.write("\x2A\x00\x00\x00", 4);
  }
  std::vector<std::int32_t> last(2);
  TokenFile(path, 50'257).read(1'099'999'998, last);
  EXPECT_EQ(last, (std::vector<std::int32_t>{0, 42}));
}

TEST(TokenFile, SaysWhenItWasCutWhileRead) {
  const Scratch scratch;
  write_token_file(scratch.folder() / "tokens.bin", std::vector<std::int32_t>(100, 1));
  const TokenFile file(scratch.folder() / "tokens.bin", 10);
  std::filesystem::resize_file(scratch.folder() / "tokens.bin", 1024 + 2 * 40);
  std::vector<std::int32_t> out(100);
  EXPECT_TRUE(says(input_error([&] { file.read(0, out); }), {"ended at token 40", "cut short"}));
}

TEST(TokenFile, WritesNothingWrong) {
  const Scratch scratch;
  EXPECT_THROW(write_token_file(scratch.folder() / "tokens.bin", std::vector<std::int32_t>{}), Error);
  EXPECT_THROW(write_token_file(scratch.folder() / "tokens.bin", std::vector<std::int32_t>{1, -1}), Error);
  EXPECT_THROW(write_token_file(scratch.folder() / "nowhere" / "tokens.bin", std::vector<std::int32_t>{1}), Error);
  EXPECT_TRUE(std::filesystem::is_empty(scratch.folder()));
}

}  // namespace
}  // namespace tilewave

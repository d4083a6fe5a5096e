// IDX files read as MNIST's are written, and every way in which one can be wrong.
#include "framework/io/idx_file.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "kernels/core/error.h"
#include "tests/framework/io/files.h"

namespace tilewave {
namespace {

std::string idx_bytes(int type, const std::vector<std::uint32_t>& dimensions, std::string_view values) {
  std::string bytes = {'\0', '\0', static_cast<char>(type), static_cast<char>(dimensions.size())};
  for (const std::uint32_t size : dimensions) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(size >> shift);
  }
  return bytes.append(values);
}

class IdxFiles : public testing::Test {
 protected:
  std::filesystem::path file(std::string_view name, std::string_view bytes) const {
    put(folder_ / name, bytes);
    return folder_ / name;
  }
  std::string refusal(std::string_view bytes) const {
    const std::filesystem::path path = file("digits.idx", bytes);
    const std::string sentence = sentence_of<InputError>([&] { read_idx_pictures(path); });
    EXPECT_TRUE(sentence.starts_with(path.string() + ": ")) << sentence;
    EXPECT_TRUE(sentence.ends_with('.')) << sentence;
    return sentence;
  }
  void expect(std::string_view bytes, std::string_view part) const {
    const std::string sentence = refusal(bytes);
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence << "\n does not say: " << part;
  }
  MemoryFolder folder_;
};

TEST_F(IdxFiles, HoldPicturesAndLabels) {
  const auto grey = file("grey", idx_bytes(8, {2, 1, 3}, "abcdef"));
  const auto color = file("color", idx_bytes(8, {1, 1, 2, 3}, "abcdef"));
  const auto labels = file("labels", idx_bytes(8, {2}, "\x05\xFF"));
  const IdxPictures pictures = read_idx_pictures(grey);
  EXPECT_EQ(pictures.count, 2);
  EXPECT_EQ(pictures.shape, (PictureShape{.height = 1, .width = 3, .channels = 1}));
  EXPECT_EQ(pictures.pixels, (std::vector<std::uint8_t>{'a', 'b', 'c', 'd', 'e', 'f'}));
  EXPECT_EQ(read_idx_pictures(color).shape, (PictureShape{.height = 1, .width = 2, .channels = 3}));
  EXPECT_EQ(read_idx_labels(labels), (std::vector<std::uint8_t>{5, 255}));
  const LabelledIdxPictures both = read_idx(grey, labels);
  EXPECT_EQ(both.pictures.count, 2);
  EXPECT_EQ(both.labels.size(), 2u);
}

TEST_F(IdxFiles, AreBigEndian) {
  const auto path = file("wide", idx_bytes(8, {1, 1, 0x0102}, std::string(0x0102, 'x')));
  EXPECT_EQ(read_idx_pictures(path).shape.width, 258);
}

TEST_F(IdxFiles, ThatAreNoneAreRefused) {
  expect("", "has 0 bytes, fewer than an IDX file begins with");
  expect(std::string("\0\0\x08", 3), "has 3 bytes");
  expect("PNG?", "is no IDX file: it begins with the bytes 80 and 78");
  expect(std::string("\x1F\x8B\x08\x00rest", 8), "is compressed with gzip; unpack it first: gunzip ");
  expect(idx_bytes(0x0D, {1, 1, 1}, "abcd"), "holds 32-bit floating-point numbers (type 13)");
  expect(idx_bytes(0x09, {1, 1, 1}, "a"), "holds signed bytes (type 9)");
  expect(idx_bytes(0x0B, {1, 1, 1}, "ab"), "holds 16-bit integers");
  expect(idx_bytes(0x0C, {1, 1, 1}, "abcd"), "holds 32-bit integers");
  expect(idx_bytes(0x0E, {1, 1, 1}, "abcdefgh"), "holds 64-bit floating-point numbers");
  expect(idx_bytes(0x0A, {1, 1, 1}, "a"), "the type, is 10, and the format has no such");
  expect(idx_bytes(8, {}, "a"), "has 0 dimensions");
  expect(idx_bytes(8, {1, 1, 1, 1, 1}, "a"), "has 5 dimensions");
  expect(idx_bytes(8, {1}, "a"), "has 1 dimension, as labels have");
  expect(idx_bytes(8, {1, 1}, "a"), "has 2 dimensions; pictures have 3");
}

TEST_F(IdxFiles, AreComparedWithTheirHeaders) {
  const std::string whole = idx_bytes(8, {2, 2, 2}, "abcdefgh");
  for (std::size_t bytes = 4; bytes < whole.size(); ++bytes) expect(whole.substr(0, bytes), "truncated");
  expect(whole.substr(0, 10), "has 10 bytes, fewer than the header of 16 that its 3 dimensions take");
  expect(whole.substr(0, 23), "has 23 bytes, but its header says 2 x 2 x 2, which take 24; the file is truncated.");
  expect(whole + "i", "has 25 bytes, but its header says 2 x 2 x 2, which take 24; something was appended.");
  expect(idx_bytes(8, {0, 2, 2}, ""), "holds 0 x 2 x 2 bytes, which is nothing");
  expect(idx_bytes(8, {2, 2, 0}, ""), "2 x 2 x 0");
}

TEST_F(IdxFiles, SizesThatOverflowAreRefused) {
  constexpr std::uint32_t most = 0xFFFFFFFF;
  expect(idx_bytes(8, {most, most, most}, "a"), "holds 4294967295 x 4294967295 x 4294967295 bytes, more than");
  expect(idx_bytes(8, {most, most, most, most}, "a"), "more than the 8589934592 that are read");
  expect(idx_bytes(8, {1u << 31, 1u << 31, 1u << 31, 1u << 31}, "a"), "more than");  // 2^124, which is 0 modulo 2^64
  expect(idx_bytes(8, {1u << 31, 2, 2}, "a"), "truncated");                          // all that is read, and a file of 17 bytes
}

TEST_F(IdxFiles, MustBelongTogether) {
  const auto pictures = file("pictures", idx_bytes(8, {3, 1, 1}, "abc")), labels = file("labels", idx_bytes(8, {2}, "ab"));
  EXPECT_EQ(sentence_of<InputError>([&] { read_idx(pictures, labels); }),
            pictures.string() + " holds 3 pictures and " + labels.string() + " 2 labels; name files that belong together.");
  EXPECT_NE(sentence_of<InputError>([&] { read_idx(pictures, pictures); }).find("has 3 dimensions, as pictures have; labels have 1"),
            std::string::npos);
  EXPECT_NE(sentence_of<InputError>([&] { read_idx(folder_ / "none", labels); }).find("none: cannot open"), std::string::npos);
  EXPECT_NE(sentence_of<InputError>([&] { read_idx(folder_.path(), labels); }).find("cannot read"), std::string::npos);
}

}  // namespace
}  // namespace tilewave

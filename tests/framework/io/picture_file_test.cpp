// PNG, PGM and PPM files of every kind that is read, written here byte by byte, and every way in which one can be wrong.
#include "framework/io/picture_file.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

#include "framework/tensor/random.h"
#include "kernels/core/error.h"
#include "tests/framework/io/files.h"

namespace tilewave {
namespace {

using Pixels8 = std::vector<std::uint8_t>;

std::string png_word(std::uint32_t word) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(word >> shift);
  return bytes;
}

std::string png_chunk(const std::string& type, std::string_view data) {
  const std::string body = type + std::string(data);
  std::uint32_t crc = ~0u;
  for (const char byte : body) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0xEDB88320u & (0u - (crc & 1u)));
  }
  return png_word(static_cast<std::uint32_t>(data.size())) + body + png_word(~crc);
}

// zlib's format with blocks that are stored as they are.
std::string stored_stream(std::string_view data) {
  std::string out = "\x78\x01";
  std::uint32_t a = 1, b = 0;
  for (const char byte : data) {
    a = (a + static_cast<unsigned char>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  while (true) {
    const std::string_view block = data.substr(0, 65535);
    data.remove_prefix(block.size());
    const auto size = static_cast<unsigned>(block.size());
    for (const unsigned byte : {data.empty() ? 1u : 0u, size & 255u, size >> 8, ~size & 255u, ~size >> 8 & 255u})
      out += static_cast<char>(byte);
    out += block;
    if (data.empty()) return out + png_word(b << 16 | a);
  }
}

struct PngFile {
  std::uint32_t width = 0, height = 0;
  int depth = 8, kind = 0;  // 0 grey, 2 color, 3 palette, 4 grey and alpha, 6 color and alpha
  std::string rows;         // each behind its filter's byte
  std::string before;       // chunks before the pixels: a palette, what of it is transparent
  bool interlaced = false;
};

const std::string kSignature = "\x89PNG\r\n\x1a\n";

std::string png_bytes(const PngFile& png) {
  std::string header = png_word(png.width) + png_word(png.height);
  for (const int byte : {png.depth, png.kind, 0, 0, png.interlaced ? 1 : 0}) header += static_cast<char>(byte);
  return kSignature + png_chunk("IHDR", header) + png.before + png_chunk("IDAT", stored_stream(png.rows)) + png_chunk("IEND", "");
}

// Rows of so many bytes, each behind a byte that says it is not filtered.
std::string unfiltered(std::string_view bytes, std::size_t row_bytes) {
  std::string rows;
  for (std::size_t at = 0; at < bytes.size(); at += row_bytes) rows.append(1, '\0').append(bytes.substr(at, row_bytes));
  return rows;
}

std::string random_samples(std::size_t bytes, std::uint64_t seed) {
  Random random(random_key(seed));
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(random.below(256));
  return text;
}

Pixels8 pixels_of(std::string_view text) { return {text.begin(), text.end()}; }

class PictureFiles : public testing::Test {
 protected:
  Picture read(std::string_view bytes) const {
    put(path_, bytes);
    return read_picture(path_);
  }
  std::string refusal(std::string_view bytes) const {
    put(path_, bytes);
    const std::string sentence = sentence_of<InputError>([&] { read_picture(path_); });
    EXPECT_TRUE(sentence.starts_with(path_.string() + ": ")) << sentence;
    EXPECT_TRUE(sentence.ends_with('.')) << sentence;
    return sentence;
  }
  void expect(std::string_view bytes, std::string_view part) const {
    const std::string sentence = refusal(bytes);
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence << "\n does not say: " << part;
  }
  MemoryFolder folder_;
  std::filesystem::path path_ = folder_ / "digit";
};

TEST_F(PictureFiles, OfGreyAndColorPngs) {
  for (const std::uint32_t width : {1u, 7u, 300u}) {
    for (const int kind : {0, 2}) {
      const std::size_t channels = kind == 0 ? 1 : 3, row_bytes = width * channels;
      const std::string pixels = random_samples(row_bytes * 250, width);
      const Picture picture = read(png_bytes({.width = width, .height = 250, .kind = kind, .rows = unfiltered(pixels, row_bytes)}));
      EXPECT_EQ(picture.shape, (PictureShape{.height = 250, .width = width, .channels = static_cast<std::int64_t>(channels)}));
      EXPECT_EQ(picture.pixels, pixels_of(pixels));
    }
  }
}

TEST_F(PictureFiles, OfPngsOfFewBits) {
  EXPECT_EQ(read(png_bytes({.width = 3, .height = 2, .depth = 1, .rows = unfiltered("\xA0\x40", 1)})).pixels,
            (Pixels8{255, 0, 255, 0, 255, 0}));
  EXPECT_EQ(read(png_bytes({.width = 4, .height = 1, .depth = 2, .rows = unfiltered("\x1B", 1)})).pixels, (Pixels8{0, 85, 170, 255}));
  EXPECT_EQ(read(png_bytes({.width = 2, .height = 1, .depth = 4, .rows = unfiltered("\x3F", 1)})).pixels, (Pixels8{51, 255}));
}

TEST_F(PictureFiles, OfPngsOfSixteenBits) {
  const std::string samples("\x00\x00\x80\x80\xFF\xFF\x12\x34", 8);
  EXPECT_EQ(read(png_bytes({.width = 4, .height = 1, .depth = 16, .rows = unfiltered(samples, 8)})).pixels, (Pixels8{0, 128, 255, 18}));
  const Picture color = read(png_bytes({.width = 1, .height = 1, .depth = 16, .kind = 2, .rows = unfiltered(samples.substr(2), 6)}));
  EXPECT_EQ(color.pixels, (Pixels8{128, 255, 18}));
}

TEST_F(PictureFiles, OfPngsWithAPalette) {
  const std::string palette = png_chunk("PLTE", std::string("\x0A\x14\x1E\xC8\x64\x32", 6));
  const PngFile png{.width = 3, .height = 1, .depth = 8, .kind = 3, .rows = std::string("\0\1\0\1", 4), .before = palette};
  const Picture picture = read(png_bytes(png));
  EXPECT_EQ(picture.shape.channels, 3);
  EXPECT_EQ(picture.pixels, (Pixels8{200, 100, 50, 10, 20, 30, 200, 100, 50}));
  PngFile transparent = png;
  transparent.before += png_chunk("tRNS", std::string("\0", 1));  // of the first color
  EXPECT_EQ(read(png_bytes(transparent)).pixels, (Pixels8{200, 100, 50, 255, 255, 255, 200, 100, 50}));
}

TEST_F(PictureFiles, WhiteShowsThroughWhereTheyAreTransparent) {
  const std::string grey_alpha("\x00\x00\x00\xFF\x64\xFF\x64\x80", 8);
  const Picture grey = read(png_bytes({.width = 4, .height = 1, .kind = 4, .rows = unfiltered(grey_alpha, 8)}));
  EXPECT_EQ(grey.shape.channels, 1);
  EXPECT_EQ(grey.pixels, (Pixels8{255, 0, 100, 177}));  // (100 * 128 + 255 * 127) / 255 = 177.2
  const std::string color_alpha("\x0A\x14\x1E\x00\x0A\x14\x1E\xFF", 8);
  EXPECT_EQ(read(png_bytes({.width = 2, .height = 1, .kind = 6, .rows = unfiltered(color_alpha, 8)})).pixels,
            (Pixels8{255, 255, 255, 10, 20, 30}));
}

TEST_F(PictureFiles, OfInterlacedPngs) {
  constexpr std::size_t width = 11, height = 9;
  const std::string pixels = random_samples(width * height, 8);
  constexpr struct {
    std::size_t x, y, dx, dy;
  } passes[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  std::string rows;
  for (const auto& pass : passes) {
    for (std::size_t y = pass.y; y < height; y += pass.dy) {
      rows += '\0';
      for (std::size_t x = pass.x; x < width; x += pass.dx) rows += pixels[y * width + x];
    }
  }
  EXPECT_EQ(read(png_bytes({.width = width, .height = height, .rows = rows, .interlaced = true})).pixels, pixels_of(pixels));
}

TEST_F(PictureFiles, OfPngsWithAGammaOfTheirOwn) {
  const PngFile png{.width = 3, .height = 1, .rows = std::string("\0\0\x40\xFF", 4)};
  PngFile linear = png;
  linear.before = png_chunk("gAMA", png_word(100'000));
  const Picture plain = read(png_bytes(png)), turned = read(png_bytes(linear));
  EXPECT_EQ(plain.pixels, (Pixels8{0, 64, 255}));
  EXPECT_EQ(turned.pixels[0], 0);
  EXPECT_NEAR(turned.pixels[1], 137, 1);  // sRGB's curve of 64 / 255
  EXPECT_EQ(turned.pixels[2], 255);
}

TEST_F(PictureFiles, TruncatedAndDamagedPngsAreRefused) {
  const std::string whole = png_bytes({.width = 20, .height = 20, .rows = unfiltered(random_samples(400, 1), 20)});
  ASSERT_EQ(read(whole).pixels.size(), 400u);
  const std::size_t needed = whole.size() - 12 - 8;  // neither IEND nor, behind the last row, the checks of chunk and stream
  for (std::size_t bytes = 4; bytes < needed; bytes += bytes < 60 ? 1 : 13)
    expect(whole.substr(0, bytes), "is a PNG that cannot be read (");
  std::string damaged = whole;
  damaged[whole.size() / 2] ^= 1;
  expect(damaged, "IDAT");
  for (std::size_t at = 8; at < 33; ++at) {
    damaged = whole;
    damaged[at] ^= 0x55;
    expect(damaged, "is a PNG that cannot be read (");
  }
}

TEST_F(PictureFiles, PngsThatWouldTakeTooMuchAreRefusedFirst) {
  PngFile png{.width = 1'000'000, .height = 1'000'000, .rows = std::string(2, '\0')};
  expect(png_bytes(png), "says that it is 1000000 pixels wide and 1000000 high, more than the 33554432 pixels that are read");
  png.width = png.height = 5'000;
  expect(png_bytes(png), "too few for the 5000 by 5000 pixels that it says it has; it is truncated.");
  png.width = 0;
  expect(png_bytes(png), "is a PNG that cannot be read (");
}

TEST_F(PictureFiles, OfTextAndBytesOfNetpbm) {
  EXPECT_EQ(read("P2\n# by hand\n3 2\n# shades\n10\n0 5 10\n1 2\n3").pixels, (Pixels8{0, 128, 255, 26, 51, 77}));
  EXPECT_EQ(read("P5 2 2 255\nabcd").pixels, (Pixels8{'a', 'b', 'c', 'd'}));
  EXPECT_EQ(read("P5 2 1 255\n\n#").pixels, (Pixels8{'\n', '#'}));
  EXPECT_EQ(read(std::string("P5 2 1 65535\n\xFF\xFF\x80\x80", 17)).pixels, (Pixels8{255, 128}));
  const Picture text = read("P3 1 2 255 1 2 3 4 5 6 # the end\n"), bytes = read("P6\t1\r\n2 255 abcdef");
  EXPECT_EQ(text.shape, (PictureShape{.height = 2, .width = 1, .channels = 3}));
  EXPECT_EQ(text.pixels, (Pixels8{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(bytes.pixels, pixels_of("abcdef"));
}

TEST_F(PictureFiles, WrongNetpbmIsRefused) {
  expect("P5", "ends where its width should be; it is truncated");
  expect("P5 2 2 255", "ends behind its largest value; it is truncated");
  expect("P5 2 2 255#", "is no space");
  expect("P5 2 2 255\nabc", "has 3 bytes of samples, of 4; it is truncated");
  expect("P5 2 2 255\nabcde", "has 1 bytes behind its samples");
  expect(
      "P5 2 2 200\nab\xC9"
      "d",
      "sample 2 is 201, above its largest value 200");
  expect("P5 2 2 0\nabcd", "has 0 as its largest value");
  expect("P5 2 2 65536\nabcdefgh", "has 65536 as its largest value");
  expect("P5 0 2 255\n", "is 0 pixels wide and 2 high; there is nothing in it");
  expect("P5 100000 100000 255\n", "more than the 33554432 pixels");
  expect("P5 2147483647 2147483647 255\n", "more than the 33554432 pixels");
  expect("P5 5000 5000 255\nabcd", "has 21 bytes, too few for the 5000 by 5000 pixels");
  expect("P5 99999999999 2 255\n", "the number at byte 3, its width, is too large");
  expect("P5 -2 2 255\n", "byte 3 is no digit, where its width should be");
  expect("P5 2x2 255\n", "byte 4 is no digit");
  expect("P2 2 1 255 1 256", "sample 1 is 256, above");
  expect("P2 2 1 255 1", "ends where its next sample should be");
  expect("P2 2 1 255 1 2 3", "bytes behind its samples");
  expect("P2 2 1 255 1 x", "is no digit, where its next sample");
  expect("P1 1 1 1", "is a bitmap (PBM, P1)");
  expect("P4 1 1 1", "is a bitmap (PBM, P4)");
  expect("P7\nWIDTH 1", "is an arbitrary map (PAM, P7)");
}

TEST_F(PictureFiles, OtherKindsAreNamed) {
  expect("", "is empty");
  expect("\xFF\xD8\xFF\xE0", "is a JPEG; PNG, PGM and PPM are read");
  expect("GIF89a", "is a GIF");
  expect("BM1234", "is a BMP");
  expect("RIFF1234WEBP", "is a WebP");
  expect(std::string("II*\0", 4), "is a TIFF");
  expect("%PDF-1.7", "is a PDF");
  expect("\x1F\x8B\x08", "is compressed with gzip");
  expect(std::string("\0\0\x08\x03", 4), "is an IDX file");
  expect("P", "begins as no picture does that is read");
  expect("hello", "begins as no picture does that is read");
}

TEST_F(PictureFiles, ThatCannotBeReadSaySo) {
  EXPECT_NE(sentence_of<InputError>([&] { read_picture(folder_ / "none.png"); }).find("none.png: cannot open"), std::string::npos);
  EXPECT_NE(sentence_of<InputError>([&] { read_picture(folder_.path()); }).find("name a file, not a folder"), std::string::npos);
  put(path_, "P5");
  std::filesystem::resize_file(path_, kMaxPictureFileBytes + 1);
  EXPECT_NE(sentence_of<InputError>([&] { read_picture(path_); }).find("is longer than the 268435456 bytes"), std::string::npos);
}

}  // namespace
}  // namespace tilewave

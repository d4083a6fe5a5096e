#include "framework/io/picture_file.h"

#include <algorithm>
#include <limits>
#include <png.h>
#include <string>
#include <string_view>
#include <vector>

#include "framework/io/file.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

// What the bytes of a file must hold at least, so that it can have so many pixels.
struct Extent {
  std::int64_t width = 0, height = 0;
  double min_bytes_per_pixel = 0;
};

void check_extent(const Extent& extent, std::string_view bytes, std::string_view name) {
  const auto [width, height, min_bytes_per_pixel] = extent;
  TW_CHECK_INPUT(width > 0 && height > 0, name, ": says that it is ", width, " pixels wide and ", height, " high; there is nothing in it.");
  TW_CHECK_INPUT(width <= kMaxPicturePixels && height <= kMaxPicturePixels && width * height <= kMaxPicturePixels, name,
                 ": says that it is ", width, " pixels wide and ", height, " high, more than the ", kMaxPicturePixels,
                 " pixels that are read; make it smaller.");
  TW_CHECK_INPUT(min_bytes_per_pixel * static_cast<double>(width * height) <= static_cast<double>(bytes.size()), name, ": has ",
                 bytes.size(), " bytes, too few for the ", width, " by ", height, " pixels that it says it has; it is truncated.");
}

// PGM and PPM: a header of numbers and comments, then samples as text or as bytes.
class Netpbm {
 public:
  Netpbm(std::string_view bytes, std::string_view name) : bytes_(bytes), name_(name), kind_(bytes[1]) {}

  Picture read() {
    TW_CHECK_INPUT(kind_ != '1' && kind_ != '4', name_, ": is a bitmap (PBM, P", kind_, "); PNG, PGM and PPM are read: convert it.");
    TW_CHECK_INPUT(kind_ != '7', name_, ": is an arbitrary map (PAM, P7); PNG, PGM and PPM are read: convert it.");
    at_ = 2;
    const std::int64_t width = number("width"), height = number("height");
    largest_ = number("largest value");
    TW_CHECK_INPUT(largest_ > 0 && largest_ <= 65535, name_, ": has ", largest_, " as its largest value; it lies between 1 and 65535.");
    Picture picture{.shape = {.height = height, .width = width, .channels = kind_ == '3' || kind_ == '6' ? 3 : 1}, .pixels = {}};
    const bool text = kind_ == '2' || kind_ == '3';
    const int sample_bytes = !text && largest_ > 255 ? 2 : 1;  // as text, at least
    check_extent({.width = width, .height = height, .min_bytes_per_pixel = static_cast<double>(picture.shape.channels * sample_bytes)},
                 bytes_, name_);
    picture.pixels.reserve(static_cast<std::size_t>(picture.shape.values()));
    text ? read_text(picture) : read_bytes(picture, sample_bytes);
    return picture;
  }

 private:
  static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  void skip_spaces() {
    while (at_ < bytes_.size() && (is_space(bytes_[at_]) || bytes_[at_] == '#')) {
      if (bytes_[at_] == '#') {
        at_ = std::min(bytes_.find('\n', at_), bytes_.size());
      } else {
        ++at_;
      }
    }
  }

  std::int64_t number(std::string_view what) {
    skip_spaces();
    TW_CHECK_INPUT(at_ < bytes_.size(), name_, ": ends where its ", what, " should be; it is truncated.");
    std::int64_t value = 0;
    const std::size_t begin = at_;
    for (; at_ < bytes_.size() && is_digit(bytes_[at_]); ++at_) {
      value = value * 10 + (bytes_[at_] - '0');
      TW_CHECK_INPUT(value <= std::numeric_limits<std::int32_t>::max(), name_, ": the number at byte ", begin, ", its ", what,
                     ", is too large.");
    }
    TW_CHECK_INPUT(at_ > begin && (at_ == bytes_.size() || is_space(bytes_[at_]) || bytes_[at_] == '#'), name_, ": byte ", at_,
                   " is no digit, where its ", what, " should be.");
    return value;
  }

  void add(Picture& picture, std::int64_t sample) const {
    TW_CHECK_INPUT(sample <= largest_, name_, ": sample ", picture.pixels.size(), " is ", sample, ", above its largest value ", largest_,
                   ".");
    picture.pixels.push_back(static_cast<std::uint8_t>((sample * 255 + largest_ / 2) / largest_));
  }

  void read_text(Picture& picture) {
    for (std::int64_t left = picture.shape.values(); left > 0; --left) add(picture, number("next sample"));
    skip_spaces();
    check_end(bytes_.size() - at_);
  }

  void read_bytes(Picture& picture, int sample_bytes) {
    TW_CHECK_INPUT(at_ < bytes_.size(), name_, ": ends behind its largest value; it is truncated.");
    TW_CHECK_INPUT(is_space(bytes_[at_]), name_, ": byte ", at_, " is no space, which parts its largest value from its samples.");
    const std::string_view samples = bytes_.substr(++at_);
    const auto needed = static_cast<std::size_t>(picture.shape.values() * sample_bytes);
    TW_CHECK_INPUT(samples.size() >= needed, name_, ": has ", samples.size(), " bytes of samples, of ", needed, "; it is truncated.");
    check_end(samples.size() - needed);
    const auto byte = [&](std::size_t i) { return std::int64_t{static_cast<unsigned char>(samples[i])}; };
    for (std::size_t i = 0; i < needed; i += static_cast<std::size_t>(sample_bytes)) {
      add(picture, sample_bytes == 1 ? byte(i) : byte(i) << 8 | byte(i + 1));
    }
  }

  void check_end(std::size_t rest) const {
    TW_CHECK_INPUT(rest == 0, name_, ": has ", rest, " bytes behind its samples; a file of one picture alone is read.");
  }

  std::string_view bytes_, name_;
  char kind_;
  std::size_t at_ = 0;
  std::int64_t largest_ = 0;
};

// libpng's own reader of whole pictures, which catches its jumps before they reach C++.
class Png {
 public:
  Png(std::string_view bytes, std::string_view name) : bytes_(bytes), name_(name) { image_.version = PNG_IMAGE_VERSION; }
  ~Png() { ::png_image_free(&image_); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;

  Picture read() {
    check(::png_image_begin_read_from_memory(&image_, bytes_.data(), bytes_.size()));
    // A bit is the least that a pixel takes, and deflate makes at most 1032 bytes of one.
    check_extent({.width = image_.width, .height = image_.height, .min_bytes_per_pixel = 1.0 / 8 / 1032}, bytes_, name_);
    const bool color = (image_.format & PNG_FORMAT_FLAG_COLOR) != 0, alpha = (image_.format & PNG_FORMAT_FLAG_ALPHA) != 0;
    image_.format = (color ? PNG_FORMAT_FLAG_COLOR : 0u) | (alpha ? PNG_FORMAT_FLAG_ALPHA : 0u);
    image_.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // as other programs take 16 bits without a gamma
    Picture picture{.shape = {.height = image_.height, .width = image_.width, .channels = color ? 3 : 1},
                    .pixels = std::vector<std::uint8_t>(PNG_IMAGE_SIZE(image_))};
    check(::png_image_finish_read(&image_, nullptr, picture.pixels.data(), 0, nullptr));
    if (alpha) lay_on_white(picture);
    return picture;
  }

 private:
  void check(int succeeded) const {
    TW_CHECK_INPUT(succeeded != 0, name_, ": is a PNG that cannot be read (", printable(image_.message), "); it is truncated or damaged.");
  }

  // From channels and alpha to channels, in place.
  static void lay_on_white(Picture& picture) {
    const auto channels = static_cast<std::size_t>(picture.shape.channels);
    std::size_t out = 0;
    for (std::size_t in = 0; in < picture.pixels.size(); in += channels + 1) {
      const unsigned alpha = picture.pixels[in + channels];
      for (std::size_t c = 0; c < channels; ++c) {
        picture.pixels[out++] = static_cast<std::uint8_t>((picture.pixels[in + c] * alpha + 255 * (255 - alpha) + 127) / 255);
      }
    }
    picture.pixels.resize(out);
  }

  std::string_view bytes_, name_;
  png_image image_ = {};
};

// What a file is by its first bytes that people take for a picture of these, or nothing.
std::string_view kind_of_other(std::string_view bytes) {
  using namespace std::string_view_literals;
  constexpr struct {
    std::string_view beginning, kind;
  } kinds[] = {{"\xFF\xD8\xFF"sv, "a JPEG"}, {"GIF8"sv, "a GIF"},   {"BM"sv, "a BMP"},   {"RIFF"sv, "a WebP"},
               {"II*\0"sv, "a TIFF"},        {"MM\0*"sv, "a TIFF"}, {"%PDF"sv, "a PDF"}, {"\x1F\x8B"sv, "compressed with gzip"},
               {"\0\0\x08"sv, "an IDX file"}};
  for (const auto& [beginning, kind] : kinds) {
    if (bytes.starts_with(beginning)) return kind;
  }
  return {};
}

}  // namespace

Picture read_picture(const std::filesystem::path& path) {
  const std::string bytes = read_file(path, kMaxPictureFileBytes), name = path.string();
  if (bytes.starts_with("\x89PNG")) return Png(bytes, name).read();
  if (bytes.size() >= 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7') return Netpbm(bytes, name).read();
  TW_CHECK_INPUT(!bytes.empty(), name, ": is empty; name a picture: PNG, PGM or PPM.");
  const std::string_view other = kind_of_other(bytes);
  TW_CHECK_INPUT(other.empty(), name, ": is ", other, "; PNG, PGM and PPM are read: convert it.");
  throw InputError(concat(name, ": begins as no picture does that is read: PNG, PGM or PPM; convert it."));
}

}  // namespace tilewave

#include "framework/io/idx_file.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "framework/io/file.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::size_t kMagicBytes = 4, kMaxIdxDimensions = 4;

std::uint32_t byte_at(std::span<const std::byte> bytes, std::size_t at) { return std::to_integer<std::uint32_t>(bytes[at]); }

// What other types of the format are called; empty: it has no such.
std::string_view name_of_type(std::uint32_t type) {
  switch (type) {
    case 0x09:
      return "signed bytes";
    case 0x0B:
      return "16-bit integers";
    case 0x0C:
      return "32-bit integers";
    case 0x0D:
      return "32-bit floating-point numbers";
    case 0x0E:
      return "64-bit floating-point numbers";
    default:
      return {};
  }
}

// A file whose header has been read and held against its size.
class IdxFile {
 public:
  explicit IdxFile(const std::filesystem::path& path) : file_(path), name_(path.string()) {
    read_header();
    std::int64_t values = 1;
    for (const std::int64_t size : dimensions_) {
      TW_CHECK_INPUT(size > 0, name_, ": says that it holds ", shape(), " bytes, which is nothing.");
      TW_CHECK_INPUT(values <= kMaxIdxBytes / size, name_, ": says that it holds ", shape(), " bytes, more than the ", kMaxIdxBytes,
                     " that are read.");
      values *= size;
    }
    const std::int64_t expected = header_bytes() + values;
    TW_CHECK_INPUT(file_.bytes() == expected, name_, ": has ", file_.bytes(), " bytes, but its header says ", shape(), ", which take ",
                   expected, file_.bytes() < expected ? "; the file is truncated." : "; something was appended.");
  }

  const std::string& name() const { return name_; }
  const std::vector<std::int64_t>& dimensions() const { return dimensions_; }

  std::vector<std::uint8_t> values() const {
    std::vector<std::uint8_t> values(static_cast<std::size_t>(file_.bytes() - header_bytes()));
    file_.read(header_bytes(), std::as_writable_bytes(std::span(values)));
    return values;
  }

 private:
  std::int64_t header_bytes() const { return static_cast<std::int64_t>(kMagicBytes + 4 * dimensions_.size()); }

  void read_header() {
    std::array<std::byte, kMagicBytes + 4 * kMaxIdxDimensions> buffer = {};
    const std::span<std::byte> header = std::span(buffer).first(std::min(buffer.size(), static_cast<std::size_t>(file_.bytes())));
    file_.read(0, header);
    TW_CHECK_INPUT(header.size() < 2 || byte_at(header, 0) != 0x1F || byte_at(header, 1) != 0x8B, name_,
                   ": is compressed with gzip; unpack it first: gunzip ", name_, ", then name what that leaves.");
    TW_CHECK_INPUT(header.size() >= kMagicBytes, name_, ": has ", header.size(), " bytes, fewer than an IDX file begins with.");
    TW_CHECK_INPUT(byte_at(header, 0) == 0 && byte_at(header, 1) == 0, name_, ": is no IDX file: it begins with the bytes ",
                   byte_at(header, 0), " and ", byte_at(header, 1), ", not with two zeros.");
    const std::uint32_t type = byte_at(header, 2), dimensions = byte_at(header, 3);
    if (type != 0x08) {
      const std::string_view known = name_of_type(type);
      TW_CHECK_INPUT(!known.empty(), name_, ": is no IDX file: its third byte, the type, is ", type, ", and the format has no such.");
      throw InputError(concat(name_, ": holds ", known, " (type ", type, "); IDX files of unsigned bytes (type 8) are read."));
    }
    TW_CHECK_INPUT(dimensions >= 1 && dimensions <= kMaxIdxDimensions, name_, ": has ", dimensions,
                   " dimensions; labels have 1, pictures 3 or, with channels, 4.");
    const std::size_t end = kMagicBytes + std::size_t{4} * dimensions;
    TW_CHECK_INPUT(header.size() >= end, name_, ": has ", header.size(), " bytes, fewer than the header of ", end, " that its ", dimensions,
                   " dimensions take; the file is truncated.");
    for (std::size_t at = kMagicBytes; at < end; at += 4) {
      dimensions_.push_back(
          std::int64_t{byte_at(header, at) << 24 | byte_at(header, at + 1) << 16 | byte_at(header, at + 2) << 8 | byte_at(header, at + 3)});
    }
  }

  std::string shape() const {
    std::string text;
    for (const std::int64_t size : dimensions_) text += (text.empty() ? "" : " x ") + std::to_string(size);
    return text;
  }

  InputFile file_;
  std::string name_;
  std::vector<std::int64_t> dimensions_;
};

IdxFile pictures_file(const std::filesystem::path& path) {
  IdxFile file(path);
  TW_CHECK_INPUT(file.dimensions().size() >= 3, file.name(), ": has ", file.dimensions().size(),
                 file.dimensions().size() == 1 ? " dimension, as labels have" : " dimensions",
                 "; pictures have 3 (count, height, width) or 4 (channels last).");
  return file;
}

IdxFile labels_file(const std::filesystem::path& path) {
  IdxFile file(path);
  TW_CHECK_INPUT(file.dimensions().size() == 1, file.name(), ": has ", file.dimensions().size(),
                 file.dimensions().size() > 2 ? " dimensions, as pictures have" : " dimensions", "; labels have 1.");
  return file;
}

IdxPictures pictures_in(const IdxFile& file) {
  const std::vector<std::int64_t>& sizes = file.dimensions();
  return {.count = sizes[0],
          .shape = {.height = sizes[1], .width = sizes[2], .channels = sizes.size() == 4 ? sizes[3] : 1},
          .pixels = file.values()};
}

}  // namespace

IdxPictures read_idx_pictures(const std::filesystem::path& path) { return pictures_in(pictures_file(path)); }

std::vector<std::uint8_t> read_idx_labels(const std::filesystem::path& path) { return labels_file(path).values(); }

LabelledIdxPictures read_idx(const std::filesystem::path& pictures, const std::filesystem::path& labels) {
  const IdxFile picture_file = pictures_file(pictures), label_file = labels_file(labels);
  const std::int64_t count = picture_file.dimensions()[0], named = label_file.dimensions()[0];
  TW_CHECK_INPUT(count == named, picture_file.name(), " holds ", count, " pictures and ", label_file.name(), " ", named,
                 " labels; name files that belong together.");
  return {.pictures = pictures_in(picture_file), .labels = label_file.values()};
}

}  // namespace tilewave

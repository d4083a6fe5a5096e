// Reads IDX files, the format of MNIST's: two zero bytes, a byte for the type, one for the number of dimensions, each dimension as a
// big-endian uint32, then the values. Of bytes (type 8) alone:
//   pictures  [count, height, width], or [count, height, width, channels]        labels  [count]
// The size of the file is compared with the header before memory is taken. Every defect is an InputError of one sentence that names the
// file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "framework/io/picture.h"

namespace tilewave {

inline constexpr std::int64_t kMaxIdxBytes = std::int64_t{1} << 33;

struct IdxPictures {
  std::int64_t count = 0;
  PictureShape shape;                // of each
  std::vector<std::uint8_t> pixels;  // [count, height, width, channels]
};

IdxPictures read_idx_pictures(const std::filesystem::path& path);
std::vector<std::uint8_t> read_idx_labels(const std::filesystem::path& path);

struct LabelledIdxPictures {
  IdxPictures pictures;
  std::vector<std::uint8_t> labels;  // [count]
};

// Both files, which must hold as many; so much is compared before the pictures are read.
LabelledIdxPictures read_idx(const std::filesystem::path& pictures, const std::filesystem::path& labels);

}  // namespace tilewave

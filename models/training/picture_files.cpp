#include "models/training/picture_files.h"

#include <fstream>
#include <utility>

#include "framework/io/idx_file.h"
#include "framework/io/picture_file.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

// No other file that is read begins with two zero bytes.
bool is_idx(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return stream.get() == 0 && stream.get() == 0;
}

}  // namespace

NamedPictures read_picture_files(std::span<const std::filesystem::path> files, const PictureShape& shape) {
  NamedPictures all{.names = {}, .stored = {.shape = shape, .pixels = {}, .labels = {}}};
  const auto add = [&](Picture picture, const std::string& name) {
    const Picture fits = fitted(std::move(picture), {.shape = shape}, name);
    all.stored.pixels.insert(all.stored.pixels.end(), fits.pixels.begin(), fits.pixels.end());
    all.names.push_back(name);
  };
  for (const std::filesystem::path& file : files) {
    if (!is_idx(file)) {
      add(read_picture(file), file.string());
      continue;
    }
    const IdxPictures idx = read_idx_pictures(file);
    for (std::int64_t i = 0; i < idx.count; ++i) {
      const auto begin = idx.pixels.begin() + i * idx.shape.values();
      add({.shape = idx.shape, .pixels = {begin, begin + idx.shape.values()}}, concat(file.string(), '[', i, ']'));
    }
  }
  return all;
}

}  // namespace tilewave

// Pictures in files, as a model reads them: PNG, PGM and PPM, one picture each, and IDX files of many. A picture of another size or other
// channels is fitted as framework/io/picture.h says.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "framework/data/pictures.h"

namespace tilewave {

struct NamedPictures {
  std::vector<std::string> names;  // the file's; of an IDX file's pictures NAME[index], from 0
  StoredPictures stored;
};

// InputError, naming the file, where one holds no picture that can be fitted.
NamedPictures read_picture_files(std::span<const std::filesystem::path> files, const PictureShape& shape);

}  // namespace tilewave

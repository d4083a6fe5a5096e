// Reads one picture from a file, whose first bytes say which kind it is:
//   PNG            of any depth and kind, also a palette's or interlaced, through libpng; 8 bits a channel stay of 16; where it is
//                  transparent, white shows through; a gamma of its own (gAMA) is turned into sRGB's
//   PGM and PPM    P2, P3, P5 and P6 (https://netpbm.sourceforge.net/doc/), with largest values up to 65535, scaled to 0 to 255
// Grey pictures have 1 channel and colored ones 3. Sizes are checked before memory is taken. Every defect is an InputError of one sentence
// that names the file.
#pragma once

#include <cstdint>
#include <filesystem>

#include "framework/io/picture.h"

namespace tilewave {

inline constexpr std::int64_t kMaxPicturePixels = std::int64_t{1} << 25;
inline constexpr std::int64_t kMaxPictureFileBytes = std::int64_t{1} << 28;

Picture read_picture(const std::filesystem::path& path);

}  // namespace tilewave

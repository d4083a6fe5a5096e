// What a classifier's parameters and rows are counted from.
#pragma once

#include <cstdint>

#include "framework/io/picture.h"

namespace tilewave {

struct ClassifierShape {
  PictureShape picture;  // of every picture
  std::int64_t patch = 4;
  std::int64_t classes = 10;

  std::int64_t patches() const { return picture.height / patch * (picture.width / patch); }  // of a picture
};

}  // namespace tilewave

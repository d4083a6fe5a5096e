// Windows of pooling at the edges of what there is, for its tests on a CPU and on a GPU.
#pragma once

#include "kernels/ops/pool.h"
#include "tests/kernels/ops/image_matrix.h"

namespace tilewave::testing_support {

struct PoolCase {
  Images images;
  PoolWindow window;
};

// Windows that overlap, touch, leave gaps; padding of half a window; an image that is one window; one pixel; more channels than packs.
inline std::vector<PoolCase> pool_cases() {
  const auto images = [](std::int64_t count, std::int64_t channels, std::int64_t height, std::int64_t width) {
    return Images{.count = count, .channels = channels, .height = height, .width = width};
  };
  std::vector<PoolCase> cases = {
      {images(1, 1, 1, 1), {.height = 1, .width = 1, .stride_down = 1, .stride_across = 1}},
      {images(2, 3, 4, 4), {}},
      {images(2, 17, 7, 5), {.height = 3, .width = 3, .stride_down = 2, .stride_across = 2, .padding_down = 1, .padding_across = 1}},
      {images(3, 8, 9, 11), {.height = 3, .width = 3, .stride_down = 1, .stride_across = 1, .padding_down = 1, .padding_across = 1}},
      {images(2, 5, 6, 10), {.height = 2, .width = 4, .stride_down = 1, .stride_across = 3, .padding_down = 1, .padding_across = 2}},
      {images(1, 20, 8, 8), {.height = 2, .width = 2, .stride_down = 3, .stride_across = 5}},
      {images(2, 9, 5, 6), {.height = 5, .width = 6, .stride_down = 1, .stride_across = 1}},
  };
  for (std::size_t i = 0, each = cases.size(); i < each; ++i) {
    cases.push_back(cases[i]);
    cases.back().images.layout = ImageLayout::nchw;
  }
  return cases;
}

inline std::string text_of(const PoolCase& c) {
  return concat(c.images.count, " x ", c.images.channels, " x ", c.images.height, " x ", c.images.width, ' ', name_of(c.images.layout),
                ", window ", c.window.height, " x ", c.window.width, ", strides ", c.window.stride_down, " and ", c.window.stride_across);
}

}  // namespace tilewave::testing_support

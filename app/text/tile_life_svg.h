// The drawer of what a CTA does from one tile to the next.
#pragma once

#include <string>
#include <vector>

#include "models/figures/tile_life.h"

namespace tilewave {

// One picture of all of them on one axis of cycles.
std::string svg_of(const std::vector<TileLife>& lives, const std::string& title);

}  // namespace tilewave

// What a CTA does from one tile to the next, by the cost model's cycles: k_tiles that arrive in the ring, MMAs, and what of the epilogue
// nothing hides.
#pragma once

#include <string>
#include <vector>

#include "kernels/core/device.h"

namespace tilewave {

enum class LifePart : std::uint8_t { load, mma, epilogue, wait };
struct LifeSpan {
  LifePart part = LifePart::load;
  std::int64_t tile = 0;  // of the CTA's, from 0
  double begin_cycles = 0.0, end_cycles = 0.0;
  std::string label;  // "tile 1: MMAs"
};
struct LifeLane {
  std::string label;  // "TMA", "consumer 0"
  std::vector<LifeSpan> spans;
};
struct TileLife {
  std::string title;  // a kernel's name, and what it says
  std::vector<LifeLane> lanes;
};

// Three tiles of persistent, persistent/deferred and persistent/ping_pong each, forward 4096<-1024@5120 in bf16; none for a device without
// wgmma.
std::vector<TileLife> tile_lives(const DeviceInfo& device);

}  // namespace tilewave

// What of a model's state each rank keeps a share of, where ranks take a step together (ZeRO's stages 1 and 2), and what gradients are
// while ranks sum them.
#pragma once

#include <cstdint>

namespace tilewave {

enum class Sharding : std::uint8_t {
  none,       // every rank has all of it
  optimizer,  // masters and moments in shares
  gradients   // gradients too: a layer's are summed into the shares as soon as they are complete
};

// What goes over the links of a gradient: as it is, or rounded to bf16, and each sum too.
enum class GradientReductionType : std::uint8_t { fp32, bf16 };

}  // namespace tilewave

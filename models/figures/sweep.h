// A figure of one's own: a GEMM or a layer with one of its sizes swept.
#pragma once

#include <vector>

#include "models/figures/figure.h"
#include "models/planning/plan.h"

namespace tilewave {

struct Sweep {
  std::string text;               // as it was asked for: "2304x8:6400:8x4096"
  std::string_view axis;          // "N", "tokens"
  std::vector<std::int64_t> at;   // along it
  std::vector<LayerGemm> layers;  // as many, in the role forward
  std::vector<GemmRole> phases;
  PitchPolicy pitch = PitchPolicy::packed;
  GemmChoice choice;
};
Figure sweep_figure(const Sweep& sweep);

}  // namespace tilewave

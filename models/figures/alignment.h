// What alignment_k and alignment_m share: one dimension in steps of 1 around a multiple of 8, its matrices packed.
#pragma once

#include "models/figures/gemm_points.h"

namespace tilewave {

enum class Dimension : std::uint8_t { m, k };
struct AlignmentSweep {
  BlasLayout layout = BlasLayout::nn;
  Dimension dimension = Dimension::k;  // the others are 2,048
};
FigurePoints alignment_points(const AlignmentSweep& sweep, const FigureSetting& setting);
// What 1, 2 and 4 beyond the multiple cost, by series.
std::vector<Effect> alignment_effects(const FigureRecords& records, std::string_view dimension);

}  // namespace tilewave

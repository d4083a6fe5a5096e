// Operations that are no GEMMs over the size of their input, rows of 1,024 features.
#pragma once

#include <span>

#include "models/figures/figure.h"

namespace tilewave {

// Groups of a figure that tells passes apart.
inline constexpr std::string_view kForwardPass = "forward", kBackwardPass = "backward";

struct NamedOperation {
  std::string_view operation;  // as framework/measure/operation_work.h names it
  std::string_view series;
  std::string_view group = {};  // of a panel; those of one stand together
};
FigurePoints operation_points(std::span<const NamedOperation> operations, const FigureSetting& setting);
// The time of the largest over that of one with a quarter of its elements: 4 where bytes are all. Of a series in a group its name is behind
// it: "max, NHWC, backward".
std::vector<Effect> operation_effects(const FigureRecords& records);

}  // namespace tilewave

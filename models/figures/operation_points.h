// Operations that are no GEMMs over the size of their input, rows of 1,024 features.
#pragma once

#include <span>

#include "models/figures/figure.h"

namespace tilewave {

struct NamedOperation {
  std::string_view operation;  // as framework/measure/operation_work.h names it
  std::string_view series;
};
FigurePoints operation_points(std::span<const NamedOperation> operations, const FigureSetting& setting);
// The time of the largest over that of one with a quarter of its elements: 4 where bytes are all.
std::vector<Effect> operation_effects(const FigureRecords& records);

}  // namespace tilewave

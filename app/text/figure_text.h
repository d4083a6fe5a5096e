// A figure's answers in words.
#pragma once

#include <string>
#include <vector>

#include "models/figures/checklist.h"
#include "models/figures/figure.h"

namespace tilewave {

// "time at N = 1544 over that at 1536: predicted 1.87 times, measured 1.91 times (1.90 to 1.92)"
std::string effect_text(const Effect& effect);
// "prediction: 3.1 % off on average, over 66 measured points"; nothing where nothing was measured.
std::string error_text(const FigureRecords& records);
// Each reason for a gap once, with how many points it is of.
std::vector<std::string> gap_texts(const FigureRecords& records);
// Whether there is no point with an answer where the figure has points.
bool is_empty(const Figure& figure, const FigureRecords& records);

}  // namespace tilewave

// The checklist has no axes: checklist.h answers it.
#include "models/figures/figures.h"

namespace tilewave {

const Figure kSummaryFigure = {
    .name = "summary",
    .references = "Deep Learning Performance, chapter 2 and figures 1 and 2",
    .shows = "the checklist, answered for a recipe (--recipe FILE)",
    .claim = "Enable Tensor Cores, choose parameters that make execution efficient, and operate where math is the limit.",
    .runs = false};

}  // namespace tilewave

// Alignment of K, in steps of 1.
#include "models/figures/alignment.h"
#include "models/figures/figures.h"

namespace tilewave {
namespace {

constexpr FigurePanel kAlignmentKPanels[] = {{.title = "duration", .quantity = Quantity::time}};

}  // namespace

const Figure kAlignmentKFigure = {
    .name = "alignment_k",
    .references = "Matrix Multiplication Background, figure 2",
    .shows = "time over K in steps of 1: what alignment is worth",
    .claim =
        "A GEMM is fastest where K is a multiple of 8. Before cuBLAS 11 any other K fell back to CUDA cores; since then it costs a factor "
        "of 2 to 4 less, and an even K is faster than an odd one.",
    .axis = "K",
    .panels = kAlignmentKPanels,
    .points = [](const FigureSetting& setting) { return alignment_points({.layout = BlasLayout::nn, .dimension = Dimension::k}, setting); },
    .effects = [](const FigureRecords& records) { return alignment_effects(records, "K"); }};

}  // namespace tilewave

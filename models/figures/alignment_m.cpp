// Alignment of M, in steps of 1.
#include "models/figures/alignment.h"
#include "models/figures/figures.h"

namespace tilewave {
namespace {

constexpr FigurePanel kAlignmentMPanels[] = {{.title = "duration", .quantity = Quantity::time}};

}  // namespace

const Figure kAlignmentMFigure = {
    .name = "alignment_m",
    .references = "Deep Learning Performance, figure 5",
    .shows = "time over M in steps of 1: what alignment is worth",
    .claim = "Where M is a multiple of 8, Tensor Cores are used, and the GEMM is about 6 times as fast (cuBLAS 10.1).",
    .axis = "M",
    .panels = kAlignmentMPanels,
    .points = [](const FigureSetting& setting) { return alignment_points({.layout = BlasLayout::nt, .dimension = Dimension::m}, setting); },
    .effects = [](const FigureRecords& records) { return alignment_effects(records, "M"); }};

}  // namespace tilewave

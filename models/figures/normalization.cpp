// Normalization over size.
#include "models/figures/figures.h"
#include "models/figures/operation_points.h"

namespace tilewave {
namespace {

constexpr FigurePanel kNormalizationPanels[] = {{.title = "duration", .quantity = Quantity::time},
                                                {.title = "bandwidth", .quantity = Quantity::bandwidth}};
constexpr NamedOperation kNormalizationOperations[] = {{"layer_norm", "LayerNorm"}, {"layer_norm_backward", "LayerNorm, backward"}};

}  // namespace

const Figure kNormalizationFigure = {
    .name = "normalization",
    .references = "Deep Learning Performance, figures 32 and 33",
    .shows = "LayerNorm, forward and backward: time over size",
    .claim = "A normalization is limited by memory: what counts is how often it reads its input.",
    .without = "batch normalization",
    .axis = "elements",
    .scale = AxisScale::log,
    .panels = kNormalizationPanels,
    .points = [](const FigureSetting& setting) { return operation_points(kNormalizationOperations, setting); },
    .effects = operation_effects};

}  // namespace tilewave

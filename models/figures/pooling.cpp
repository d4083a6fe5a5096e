// Pooling over size.
#include "models/figures/figures.h"
#include "models/figures/operation_points.h"

namespace tilewave {
namespace {

constexpr FigurePanel kPoolingPanels[] = {{.title = "(a) duration, forward", .quantity = Quantity::time, .group = kForwardPass},
                                          {.title = "(b) duration, backward", .quantity = Quantity::time, .group = kBackwardPass},
                                          {.title = "(c) bandwidth, forward", .quantity = Quantity::bandwidth, .group = kForwardPass},
                                          {.title = "(d) bandwidth, backward", .quantity = Quantity::bandwidth, .group = kBackwardPass}};
constexpr NamedOperation kPoolingOperations[] = {{"max_pool_nhwc", "max, NHWC", kForwardPass},
                                                 {"max_pool_nchw", "max, NCHW", kForwardPass},
                                                 {"average_pool_nhwc", "average, NHWC", kForwardPass},
                                                 {"average_pool_nchw", "average, NCHW", kForwardPass},
                                                 {"max_pool_nhwc_backward", "max, NHWC", kBackwardPass},
                                                 {"max_pool_nchw_backward", "max, NCHW", kBackwardPass},
                                                 {"average_pool_nhwc_backward", "average, NHWC", kBackwardPass},
                                                 {"average_pool_nchw_backward", "average, NCHW", kBackwardPass}};

}  // namespace

const Figure kPoolingFigure = {.name = "pooling",
                               .references = "Deep Learning Performance, figure 35",
                               .shows = "max and average pooling of 3x3 with stride 1, NCHW and NHWC, forward and backward: time over size",
                               .claim = "Pooling is limited by memory: windows overlap, and what they share comes from the caches.",
                               .axis = "elements",
                               .scale = AxisScale::log,
                               .panels = kPoolingPanels,
                               .points = [](const FigureSetting& setting) { return operation_points(kPoolingOperations, setting); },
                               .effects = operation_effects};

}  // namespace tilewave

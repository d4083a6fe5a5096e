// Normalization over size.
#include <algorithm>

#include "kernels/core/error.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/operation_points.h"

namespace tilewave {
namespace {

constexpr std::string_view kLayerNorm = "LayerNorm", kNhwc = "batch, NHWC", kNchw = "batch, NCHW", kNhwcSeveral = "batch, NHWC, several",
                           kNchwSeveral = "batch, NCHW, several";
constexpr FigurePanel kNormalizationPanels[] = {
    {.title = "(a) duration, forward", .quantity = Quantity::time, .group = kForwardPass},
    {.title = "(b) duration, backward", .quantity = Quantity::time, .group = kBackwardPass},
    {.title = "(c) bandwidth, forward", .quantity = Quantity::bandwidth, .group = kForwardPass},
    {.title = "(d) bandwidth, backward", .quantity = Quantity::bandwidth, .group = kBackwardPass}};
constexpr NamedOperation kNormalizationOperations[] = {{"layer_norm", kLayerNorm, kForwardPass},
                                                       {"batch_norm_nhwc", kNhwc, kForwardPass},
                                                       {"batch_norm_nhwc_several", kNhwcSeveral, kForwardPass},
                                                       {"batch_norm_nchw", kNchw, kForwardPass},
                                                       {"batch_norm_nchw_several", kNchwSeveral, kForwardPass},
                                                       {"layer_norm_backward", kLayerNorm, kBackwardPass},
                                                       {"batch_norm_nhwc_backward", kNhwc, kBackwardPass},
                                                       {"batch_norm_nhwc_several_backward", kNhwcSeveral, kBackwardPass},
                                                       {"batch_norm_nchw_backward", kNchw, kBackwardPass},
                                                       {"batch_norm_nchw_several_backward", kNchwSeveral, kBackwardPass}};
constexpr double kOnTheChip = 1 << 22;  // elements, which an H100 holds between the phases of one pass

// What reading again costs, of images that a chip of today holds.
std::vector<Effect> normalization_effects(const FigureRecords& records) {
  std::vector<Effect> effects = operation_effects(records);
  const double most = records.back().x, held = std::min(most, kOnTheChip);
  for (const std::string_view group : {kForwardPass, kBackwardPass}) {
    for (const auto& [several, one] : {std::pair{kNhwcSeveral, kNhwc}, std::pair{kNchwSeveral, kNchw}}) {
      add_ratio(effects, {.what = concat("time in several passes over that in one, ", std::llround(held), " elements, ", one, ", ", group),
                          .over = find_record(records, {.series = std::string(several), .x = held, .group = std::string(group)}),
                          .under = find_record(records, {.series = std::string(one), .x = held, .group = std::string(group)})});
    }
  }
  return effects;
}

}  // namespace

const Figure kNormalizationFigure = {
    .name = "normalization",
    .references = "Deep Learning Performance, figures 32 and 33",
    .shows = "LayerNorm and batch normalization, in one pass and in several, NCHW and NHWC: time over size",
    .claim = "A normalization is limited by memory: what counts is how often it reads its input.",
    .axis = "elements",
    .scale = AxisScale::log,
    .panels = kNormalizationPanels,
    .points = [](const FigureSetting& setting) { return operation_points(kNormalizationOperations, setting); },
    .effects = normalization_effects};

}  // namespace tilewave

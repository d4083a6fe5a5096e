// Layers of as many inputs as outputs.
#include "kernels/core/error.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

constexpr std::int64_t kLayersBatch = 4096;

FigurePoints layers_points(const FigureSetting& setting) {
  FigurePoints figure;
  for (const std::int64_t size : {256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192}) {
    const std::int64_t features = setting.sized(size);
    add_phases(figure, {.out = features, .in = features, .tokens = setting.sized(kLayersBatch)}, {.x = static_cast<double>(features)},
               setting);
  }
  figure.how = concat("Inputs = outputs from 256 to 8192, batch ", kLayersBatch, " (the guide prints none), packed.", toy_text(setting));
  return figure;
}

}  // namespace

const Figure kLayersFigure = {.name = "layers",
                              .references = "Optimizing Linear/Fully-Connected Layers, figure 3; Deep Learning Performance, figure 14",
                              .shows = "throughput and time over inputs = outputs, three phases: larger layers are more efficient",
                              .claim =
                                  "A larger layer is a larger GEMM and more efficient: one twice the size often takes less than twice the "
                                  "time.",
                              .axis = "inputs = outputs",
                              .scale = AxisScale::log,
                              .panels = kRateAndTimePanels,
                              .points = layers_points,
                              .effects = [](const FigureRecords& records) { return last_over_first(records, {.behind = " features"}); }};

}  // namespace tilewave

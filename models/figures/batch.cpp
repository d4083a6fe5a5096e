// A layer over its batch.
#include "kernels/core/error.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

constexpr FigurePanel kBatchPanels[] = {{.title = "throughput", .quantity = Quantity::rate},
                                        {.title = "duration", .quantity = Quantity::time}};

FigurePoints batch_points(const FigureSetting& setting) {
  FigurePoints figure;
  for (const std::int64_t batch : {32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384}) {
    const auto x = static_cast<double>(setting.sized(batch));
    if (!figure.points.empty() && figure.points.back().x == x) continue;
    add_phases(figure, {.out = setting.sized(1024), .in = setting.sized(4096), .tokens = setting.sized(batch)}, {.x = x}, setting);
  }
  figure.how = concat("4096 inputs, 1024 outputs, batch 32 to 16384, packed.", toy_text(setting));
  return figure;
}

std::vector<Effect> batch_effects(const FigureRecords& records) {
  std::vector<Effect> effects;
  for (const std::string& series : series_of(records)) {
    const std::vector<const FigureRecord*> all = records_of(records, series);
    add_ratio(effects, {.what = concat("FLOP/s at batch ", std::llround(all.back()->x), " over those at ", std::llround(all.front()->x),
                                       ", ", series),
                        .of = RatioOf::rates,
                        .over = all.back(),
                        .under = all.front()});
  }
  return effects;
}

}  // namespace

const Figure kBatchFigure = {
    .name = "batch",
    .references = "Optimizing Linear/Fully-Connected Layers, figure 4; Deep Learning Performance, figure 15",
    .shows = "throughput and time over the batch, three phases",
    .claim =
        "A larger batch makes more tiles in the forward pass and in the activation gradient, and longer dot products "
        "in the weight gradient; large ones reach about 250 TFLOP/s on an A100.",
    .axis = "batch",
    .scale = AxisScale::log,
    .panels = kBatchPanels,
    .points = batch_points,
    .effects = batch_effects};

}  // namespace tilewave

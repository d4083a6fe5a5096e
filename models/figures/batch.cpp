// A layer over its batch.
#include "kernels/core/error.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

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
    .panels = kRateAndTimePanels,
    .points = batch_points,
    .effects = [](const FigureRecords& records) { return last_over_first(records, {.before = "batch "}); }};

}  // namespace tilewave

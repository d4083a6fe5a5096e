// Step 2 of the case study: the batch a multiple of 8.
#include "kernels/core/error.h"
#include "models/figures/case_study.h"
#include "models/figures/figures.h"

namespace tilewave {
namespace {

FigurePoints batch_of_8_points(const FigureSetting& setting) {
  FigurePoints figure;
  for (const std::int64_t batch : {4095, 4096}) {
    const LayerGemm layer = {.out = setting.sized(4096), .in = setting.sized(1024), .tokens = setting.sized(batch)};
    add_case_study(figure, {.layer = layer, .place = static_cast<double>(batch - 4095), .label = std::to_string(batch)}, setting);
  }
  figure.how = concat("1024 inputs, 4096 outputs, packed.", toy_text(setting));
  return figure;
}

}  // namespace

const Figure kBatchOf8Figure = {
    .name = "batch_of_8",
    .references = "Optimizing Linear/Fully-Connected Layers, figure 8; Deep Learning Performance, figure 38",
    .shows = "a layer at batch 4095 or 4096, three phases: multiples of 8",
    .claim =
        "The forward pass and the activation gradient do not care, since the batch is nobody's fastest-varying dimension there. The "
        "weight gradient, whose K it is, falls back to CUDA cores before cuBLAS 11, and still gains since.",
    .axis = "batch",
    .scale = AxisScale::categories,
    .panels = kCaseStudyPanels,
    .points = batch_of_8_points,
    .effects = [](const FigureRecords& records) {
      std::vector<Effect> effects;
      add_case_study_ratio(effects, records, {.what = "FLOP/s at 4096 over those at 4095", .over = "4096", .under = "4095"});
      return effects;
    }};

}  // namespace tilewave

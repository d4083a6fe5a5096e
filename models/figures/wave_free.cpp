// Step 3 of the case study: batches of whole waves.
#include <algorithm>

#include "kernels/core/error.h"
#include "models/figures/case_study.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/planning/gemm_answer.h"

namespace tilewave {
namespace {

constexpr std::int64_t kWaveFreeOut = 4096, kWaveFreeIn = 1024;

FigurePoints wave_free_points(const FigureSetting& setting) {
  FigurePoints figure;
  const LayerGemm largest = {.out = setting.sized(kWaveFreeOut), .in = setting.sized(kWaveFreeIn), .tokens = setting.sized(5120)};
  const HeldTile held = held_tile(plain_gemm(largest, setting.precision, PitchPolicy::packed), setting.device);
  const std::int64_t down = ceil_div(largest.out, held.tile.m), period = columns_of_whole_waves(held.slots, down) * held.tile.n;
  std::vector<std::int64_t> batches;
  for (const std::int64_t batch : {2048, 2560, 4096, 5120}) {
    batches.push_back(setting.sized(batch));
    if (!setting.printed()) batches.push_back(round_up(setting.sized(batch), period));
  }
  std::ranges::sort(batches);
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  for (std::size_t i = 0; i < batches.size(); ++i) {
    LayerGemm layer = largest;
    layer.tokens = batches[i];
    add_case_study(figure, {.layer = layer, .place = static_cast<double>(i), .label = std::to_string(batches[i])}, setting);
  }
  figure.how = concat(
      "1024 inputs, 4096 outputs, packed: the guide's batches", setting.printed() ? "" : ", and those at which whole waves of ",
      setting.printed() ? std::string() : concat(held.tile.m, 'x', held.tile.n, " fill, multiples of ", period), '.', toy_text(setting));
  return figure;
}

// Of neighbours, and as the guide has it. All sizes are multiples of 8, so the groups differ by nothing.
std::vector<Effect> wave_free_effects(const FigureRecords& records) {
  std::vector<Effect> effects;
  std::vector<std::string> labels;
  for (const FigureRecord& record : records) {
    if (std::ranges::find(labels, record.label) == labels.end()) labels.push_back(record.label);
  }
  std::ranges::sort(labels, {}, [](const std::string& label) { return std::stoll(label); });
  const auto add = [&](const std::string& over, const std::string& under) {
    add_case_study_ratio(effects, records,
                         {.what = concat("FLOP/s at ", over, " over those at ", under), .over = over, .under = under, .group = kAnyGroup});
  };
  for (std::size_t i = 1; i < labels.size(); ++i) add(labels[i], labels[i - 1]);
  if (std::ranges::find(labels, "2560") != labels.end() && labels.size() > 2) add("2560", "4096");
  return effects;
}

}  // namespace

const Figure kWaveFreeFigure = {
    .name = "wave_free",
    .references = "Optimizing Linear/Fully-Connected Layers, figure 9; Deep Learning Performance, figure 39",
    .shows = "a layer at batches of whole waves and others, three phases",
    .claim =
        "On a V100 the batches 2560 and 5120 make whole waves of 80 tiles, and 2560 reaches more than the larger 4096. The weight "
        "gradient's output does not depend on the batch, so its waves do not either. Another GPU has other batches.",
    .axis = "batch",
    .scale = AxisScale::categories,
    .panels = kCaseStudyPanels,
    .points = wave_free_points,
    .effects = wave_free_effects};

}  // namespace tilewave

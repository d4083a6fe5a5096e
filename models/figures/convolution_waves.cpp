// Waves of a convolution over its batch.
#include <algorithm>

#include "kernels/core/error.h"
#include "models/figures/convolution_points.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

constexpr std::int64_t kWavesEdge = 16, kWavesChannels = 256, kWavesTaps = 9;

// The matrix that the filter is multiplied with, were it in memory.
GemmProblem waves_gemm(std::int64_t images, std::int64_t channels, const FigureSetting& setting) {
  return plain_gemm({.out = channels, .in = kWavesTaps * channels, .tokens = images * kWavesEdge * kWavesEdge}, setting.precision,
                    PitchPolicy::packed);
}

FigurePoints convolution_waves_points(const FigureSetting& setting) {
  FigurePoints figure;
  const std::int64_t channels = setting.toy() ? kWavesChannels / 16 : kWavesChannels;
  const HeldTile held = held_tile(waves_gemm(64, channels, setting), setting.device);
  const auto tiles_of = [&](std::int64_t images) {
    return ceil_div(channels, held.tile.m) * ceil_div(images * kWavesEdge * kWavesEdge, held.tile.n);
  };
  constexpr std::int64_t kWaves = 3, kMaxPlaces = 40;
  std::int64_t most = 1;
  while (tiles_of(most) <= kWaves * held.slots && most < 4096) ++most;
  if (setting.printed()) most = 100;
  const std::int64_t stride = std::max<std::int64_t>(1, most / kMaxPlaces);
  for (std::int64_t images = 1; images <= most; ++images) {
    const bool first =
        images > 1 && tiles_of(images) / held.slots != tiles_of(images - 1) / held.slots;  // the last one of a wave, or behind it
    const bool next = images > 2 && tiles_of(images - 1) / held.slots != tiles_of(images - 2) / held.slots;
    if (images % stride != 0 && !first && !next) continue;
    const GemmProblem problem = waves_gemm(images, channels, setting);
    FigurePoint point =
        chosen_point({.series = concat("GEMM, ", held.tile.m, 'x', held.tile.n, " held"), .x = static_cast<double>(images)}, problem);
    point.choice = held.choice;
    figure.points.push_back(point);
    ConvolutionPass pass = convolution_pass({.images = 1, .edge = kWavesEdge, .channels = kWavesChannels, .outputs = kWavesChannels},
                                            GemmRole::forward, setting);
    pass.images.count = images;
    add_convolution(figure, {.series = "convolution", .x = static_cast<double>(images)}, pass);
    if (tiles_of(images) % held.slots == 0) figure.marks.push_back({.label = "the last wave is full", .at = static_cast<double>(images)});
  }
  figure.how = concat("A 3x3 filter on images of 16x16, ", channels, " -> ", channels, " channels, 1 to ", most, " images; ", held.slots,
                      " tiles at a time.", toy_text(setting));
  return figure;
}

std::vector<Effect> convolution_waves_effects(const FigureRecords& records) {
  std::vector<Effect> effects;
  const std::vector<const FigureRecord*> held = records_of(records, records.front().series);
  const auto full = std::ranges::find_if(held, [](const FigureRecord* one) { return one->tiles > 0 && one->tail_tiles == 0; });
  if (full == held.end() || full + 1 == held.end()) return effects;
  for (const std::string& series : series_of(records)) {
    add_ratio(effects, {.what = concat("time of ", std::llround((*(full + 1))->x), " images over that of ", std::llround((*full)->x),
                                       ", which fill the waves, ", series),
                        .over = find_record(records, {.series = series, .x = (*(full + 1))->x}),
                        .under = find_record(records, {.series = series, .x = (*full)->x})});
  }
  return effects;
}

}  // namespace

const Figure kConvolutionWavesFigure = {
    .name = "convolution_waves",
    .references = "Deep Learning Performance, figure 20",
    .shows = "throughput, time and tiles of a convolution over its batch: the last wave leaves SMs idle",
    .claim =
        "Small convolutions come in waves as GEMMs do: on 80 SMs that run two tiles each, 40 images fill 160 places and a 41st needs "
        "another wave.",
    .axis = "images",
    .panels = kQuantizationPanels,
    .points = convolution_waves_points,
    .effects = convolution_waves_effects};

}  // namespace tilewave

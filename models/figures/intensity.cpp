// Arithmetic intensity over the batch, beside what each device can do per byte.
#include <algorithm>
#include <cmath>

#include "kernels/core/device_profiles.h"
#include "kernels/core/error.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

constexpr FigurePanel kIntensityPanels[] = {
    {.title = "arithmetic intensity, and operations per byte of each device", .quantity = Quantity::intensity}};
constexpr std::int64_t kFeatures = 4096;

// Where the layer's FLOPs per byte come to the level: B with F^2 B / (2 F B + F^2) = level.
double batch_of_level(double level) {
  const double features = kFeatures;
  return level * features / (features - 2.0 * level);
}

// Operands of 16 bits on every device, as the guide has them.
FigurePoints intensity_points(const FigureSetting&) {
  FigurePoints figure;
  std::vector<std::int64_t> batches;
  for (std::int64_t batch = 1; batch <= 16384; batch *= 2) batches.push_back(batch);
  for (const DeviceProfile& profile : device_profiles()) {
    const double level = ops_per_byte(profile.device, DType::f16, MathMode::ieee);
    figure.levels.push_back({.label = concat(profile.key, ' ', std::llround(level)), .at = level});
    batches.push_back(std::llround(batch_of_level(level)));
  }
  std::ranges::sort(batches);
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  for (const std::int64_t batch : batches) {
    const GemmProblem problem = plain_gemm({.out = kFeatures, .in = kFeatures, .tokens = batch}, Precision::fp16, PitchPolicy::packed);
    figure.points.push_back(chosen_point({.series = "all three phases", .x = static_cast<double>(batch)}, problem));
  }
  figure.how =
      "4096 inputs and outputs, operands of 16 bits; the three phases read and write the same matrices. Levels are printed peaks "
      "over printed bandwidths.";
  return figure;
}

std::vector<Effect> intensity_effects(const FigureRecords&) {
  std::vector<Effect> effects;
  for (const DeviceProfile& profile : device_profiles()) {
    const double level = ops_per_byte(profile.device, DType::f16, MathMode::ieee);
    effects.push_back({.what = concat("batch beyond which ", profile.key, " is limited by math"),
                       .predicted = static_cast<double>(std::llround(batch_of_level(level))),
                       .unit = ""});
  }
  return effects;
}

}  // namespace

const Figure kIntensityFigure = {.name = "intensity",
                                 .references = "Optimizing Linear/Fully-Connected Layers, figure 5; Deep Learning Performance, figure 16",
                                 .shows = "FLOPs per byte over the batch, with the line of every device",
                                 .claim =
                                     "A layer of 4096 inputs and outputs is limited by memory for batches of 128 and fewer; small batches "
                                     "always are.",
                                 .axis = "batch",
                                 .scale = AxisScale::log,
                                 .panels = kIntensityPanels,
                                 .runs = false,
                                 .points = intensity_points,
                                 .effects = intensity_effects};

}  // namespace tilewave

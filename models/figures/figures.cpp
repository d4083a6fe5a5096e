#include "models/figures/figures.h"

#include <algorithm>
#include <vector>

#include "framework/recipe/nearest.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::string_view kNoConvolution = "convolutions have no figures yet";

Figure not_here(std::string_view name, std::string_view references, std::string_view shows, std::string_view reason) {
  return {.name = name, .references = references, .shows = shows, .absent = reason};
}

const Figure kNotHere[] = {
    not_here("convolution_layout", "Deep Learning Performance, figures 18 and 19", "NCHW beside NHWC", kNoConvolution),
    not_here("convolution_waves", "Deep Learning Performance, figure 20", "waves of a convolution over its batch", kNoConvolution),
    not_here("convolution_batch", "Deep Learning Performance, figures 21 and 22", "a convolution over batch, height and width",
             kNoConvolution),
    not_here("convolution_filter", "Deep Learning Performance, figure 23", "a convolution over its filter's size", kNoConvolution),
    not_here("convolution_channels", "Deep Learning Performance, figures 24 to 27", "a convolution over its channels", kNoConvolution),
    not_here("convolution_stride", "Deep Learning Performance, figures 28 and 29", "a convolution over its stride", kNoConvolution),
    not_here("convolution_dilation", "Deep Learning Performance, figures 30 and 31", "dilated and grouped convolutions", kNoConvolution),
};

}  // namespace

std::span<const Figure* const> figures() {
  static const std::vector<const Figure*> all = [] {
    std::vector<const Figure*> list = {
        &kAlignmentKFigure,       &kAlignmentMFigure,       &kFootprintFigure, &kDepthFigure,  &kTilesFigure,
        &kTileQuantizationFigure, &kWaveQuantizationFigure, &kLayersFigure,    &kBatchFigure,  &kIntensityFigure,
        &kVocabularyFigure,       &kBatchOf8Figure,         &kWaveFreeFigure,  &kGemvFigure,   &kActivationsFigure,
        &kNormalizationFigure,    &kPoolingFigure,          &kDiagramsFigure,  &kSummaryFigure};
    for (const Figure& figure : kNotHere) list.push_back(&figure);
    return list;
  }();
  return all;
}

const Figure& figure_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Figure* figure : figures()) {
    names.push_back(figure->name);
    if (figure->name != name) continue;
    TW_CHECK_INPUT(figure->absent.empty(), "figures ", name, ": it is not here yet: ", figure->absent,
                   "; tilewave figures lists those that are.");
    return *figure;
  }
  const std::string_view nearest = nearest_word(name, names);
  throw InputError(concat("figures ", name, ": there is no such figure", nearest.empty() ? "" : concat(" (did you mean ", nearest, "?)"),
                          "; tilewave figures lists them."));
}

}  // namespace tilewave

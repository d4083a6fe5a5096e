#include "models/figures/figures.h"

#include <algorithm>
#include <vector>

#include "framework/recipe/nearest.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::string_view kNhwcAlone = "convolution takes NHWC alone";

Figure not_here(std::string_view name, std::string_view references, std::string_view shows, std::string_view reason) {
  return {.name = name, .references = references, .shows = shows, .absent = reason};
}

const Figure kNotHere[] = {
    not_here("convolution_layout", "Deep Learning Performance, figures 18 and 19", "NCHW beside NHWC", kNhwcAlone),
};

}  // namespace

std::span<const Figure* const> figures() {
  static const std::vector<const Figure*> all = [] {
    std::vector<const Figure*> list = {&kAlignmentKFigure,
                                       &kAlignmentMFigure,
                                       &kFootprintFigure,
                                       &kDepthFigure,
                                       &kTilesFigure,
                                       &kTileQuantizationFigure,
                                       &kWaveQuantizationFigure,
                                       &kLayersFigure,
                                       &kBatchFigure,
                                       &kIntensityFigure,
                                       &kVocabularyFigure,
                                       &kBatchOf8Figure,
                                       &kWaveFreeFigure,
                                       &kGemvFigure,
                                       &kActivationsFigure,
                                       &kNormalizationFigure,
                                       &kPoolingFigure,
                                       &kConvolutionBatchFigure,
                                       &kConvolutionFilterFigure,
                                       &kConvolutionChannelsInFigure,
                                       &kConvolutionChannelsOutFigure,
                                       &kConvolutionStrideFigure,
                                       &kConvolutionDilationFigure,
                                       &kConvolutionWavesFigure,
                                       &kDiagramsFigure,
                                       &kSummaryFigure};
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

// The list of figures, in the guides' order. Each has a file of its name.
#pragma once

#include <span>

#include "models/figures/figure.h"

namespace tilewave {

extern const Figure kAlignmentKFigure, kAlignmentMFigure, kFootprintFigure, kDepthFigure, kTilesFigure, kTileQuantizationFigure,
    kWaveQuantizationFigure, kLayersFigure, kBatchFigure, kIntensityFigure, kVocabularyFigure, kBatchOf8Figure, kWaveFreeFigure,
    kGemvFigure, kActivationsFigure, kNormalizationFigure, kPoolingFigure, kConvolutionBatchFigure, kConvolutionFilterFigure,
    kConvolutionChannelsInFigure, kConvolutionChannelsOutFigure, kConvolutionStrideFigure, kConvolutionDilationFigure,
    kConvolutionWavesFigure, kDiagramsFigure, kSummaryFigure;

std::span<const Figure* const> figures();  // those that are not here yet among them

// By its name; InputError with the nearest one, or where it is not here yet with the reason.
const Figure& figure_named(std::string_view name);

}  // namespace tilewave

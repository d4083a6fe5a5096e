// What vocabulary, batch_of_8 and wave_free share: the Transformer case study's layers, three phases, Tensor Cores as libraries once had
// them and on any alignment.
#pragma once

#include "models/figures/gemm_points.h"

namespace tilewave {

inline constexpr const char *kStrictGroup = "strict", *kAnyGroup = "any";
inline constexpr FigurePanel kCaseStudyPanels[] = {
    {.title = "(a) Tensor Cores on aligned operands alone", .quantity = Quantity::rate, .group = "strict"},
    {.title = "(b) Tensor Cores on any", .quantity = Quantity::rate, .group = "any"}};

struct CaseStudyLayer {
  LayerGemm layer;
  double place = 0.0;
  std::string label;
  PitchPolicy pitch = PitchPolicy::packed;
};
// In both groups; on a CPU, which has no Tensor Cores, in the second alone.
void add_case_study(FigurePoints& figure, const CaseStudyLayer& one, const FigureSetting& setting);

// `over` divided by `under` in every phase, and in both groups or the one named.
struct CaseStudyRatio {
  std::string what;  // "FLOP/s at 2560 over those at 4096"
  std::string over, under;
  std::string group = {};
};
void add_case_study_ratio(std::vector<Effect>& effects, const FigureRecords& records, const CaseStudyRatio& ratio);

}  // namespace tilewave

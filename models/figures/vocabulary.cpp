// Step 1 of the case study: the vocabulary a multiple of 8.
#include "kernels/core/error.h"
#include "models/figures/case_study.h"
#include "models/figures/figures.h"

namespace tilewave {
namespace {

constexpr std::int64_t kOddVocabulary = 33708, kPaddedVocabulary = 33712;

FigurePoints vocabulary_points(const FigureSetting& setting) {
  FigurePoints figure;
  const auto layer = [&](std::int64_t vocabulary) {
    return LayerGemm{.out = setting.sized(vocabulary), .in = setting.sized(1024), .tokens = setting.sized(5120)};
  };
  const CaseStudyLayer all[] = {
      {.layer = layer(kOddVocabulary), .place = 0, .label = "33708"},
      {.layer = layer(kPaddedVocabulary), .place = 1, .label = "33712"},
      {.layer = layer(kOddVocabulary), .place = 2, .label = "33708, aligned pitch", .pitch = PitchPolicy::aligned}};
  for (const CaseStudyLayer& one : all) add_case_study(figure, one, setting);
  figure.how = concat(
      "1024 inputs, batch 5120, packed; the third place, rows of 33708 that start on multiples of 128 bytes, is not the "
      "guide's.",
      toy_text(setting));
  return figure;
}

}  // namespace

const Figure kVocabularyFigure = {
    .name = "vocabulary",
    .references = "Optimizing Linear/Fully-Connected Layers, figure 7; Deep Learning Performance, figure 37",
    .shows = "the projection to a vocabulary of 33708 or 33712, three phases: pad it",
    .claim =
        "A vocabulary that is no multiple of 8 cannot use Tensor Cores before cuBLAS 11, and is noticeably slower since. Four padding "
        "tokens, 33708 to 33712, mend it.",
    .axis = "vocabulary",
    .scale = AxisScale::categories,
    .panels = kCaseStudyPanels,
    .points = vocabulary_points,
    .effects = [](const FigureRecords& records) {
      std::vector<Effect> effects;
      add_case_study_ratio(effects, records, {.what = "FLOP/s at 33712 over those at 33708", .over = "33712", .under = "33708"});
      add_case_study_ratio(
          effects, records,
          {.what = "FLOP/s of 33708 with aligned pitch over packed ones", .over = "33708, aligned pitch", .under = "33708"});
      return effects;
    }};

}  // namespace tilewave

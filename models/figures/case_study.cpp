#include "models/figures/case_study.h"

#include "kernels/core/error.h"
#include "models/figures/effects.h"

namespace tilewave {

void add_case_study(FigurePoints& figure, const CaseStudyLayer& one, const FigureSetting& setting) {
  LayerPlace place = {.x = one.place, .label = one.label, .group = kStrictGroup, .policy = AlignmentPolicy::strict, .pitch = one.pitch};
  if (setting.device.backend == Backend::cuda) add_phases(figure, one.layer, place, setting);
  place.group = kAnyGroup, place.policy = AlignmentPolicy::any;
  add_phases(figure, one.layer, place, setting);
}

void add_case_study_ratio(std::vector<Effect>& effects, const FigureRecords& records, const CaseStudyRatio& ratio) {
  for (const char* group : {kStrictGroup, kAnyGroup}) {
    if (!ratio.group.empty() && ratio.group != group) continue;
    for (const std::string& series : series_of(records)) {
      add_ratio(effects, {.what = concat(ratio.what, ", ", series, ", ", group),
                          .of = RatioOf::rates,
                          .over = find_record(records, {.series = series, .label = ratio.over, .group = group}),
                          .under = find_record(records, {.series = series, .label = ratio.under, .group = group})});
    }
  }
}

}  // namespace tilewave

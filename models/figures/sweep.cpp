#include "models/figures/sweep.h"

#include "kernels/core/error.h"
#include "models/figures/effects.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

constexpr FigurePanel kSweepPanels[] = {{.title = "throughput", .quantity = Quantity::rate},
                                        {.title = "duration", .quantity = Quantity::time},
                                        {.title = "tiles", .quantity = Quantity::tiles}};

FigurePoints sweep_points(const Sweep& sweep, const FigureSetting& setting) {
  FigurePoints figure;
  for (std::size_t i = 0; i < sweep.layers.size(); ++i) {
    for (const GemmRole phase : sweep.phases) {
      LayerGemm gemm = sweep.layers[i];
      gemm.role = phase;
      const Place place = {.series = std::string(name_of(phase)), .x = static_cast<double>(sweep.at[i])};
      FigurePoint point = chosen_point(place, plain_gemm(gemm, setting.precision, sweep.pitch));
      point.pitch = sweep.pitch;
      point.choice = sweep.choice;
      figure.points.push_back(point);
      add_library_point(figure, place, point.problem, setting);
    }
  }
  figure.how = concat(sweep.text, ", ", sweep.pitch == PitchPolicy::packed ? "packed" : "aligned pitch", '.');
  return figure;
}

// The fastest place over the slowest one, in FLOP/s: what the sizes between lose.
std::vector<Effect> sweep_effects(const FigureRecords& records) {
  std::vector<Effect> effects;
  for (const std::string& series : series_of(records)) {
    const FigureRecord *most = nullptr, *least = nullptr;
    for (const FigureRecord* record : records_of(records, series)) {
      const double rate = record->value(Quantity::rate, record->measured() ? record->measured_s : record->predicted_s);
      const auto rate_of = [](const FigureRecord* one) {
        return one->value(Quantity::rate, one->measured() ? one->measured_s : one->predicted_s);
      };
      if (std::isnan(rate)) continue;
      if (most == nullptr || rate > rate_of(most)) most = record;
      if (least == nullptr || rate < rate_of(least)) least = record;
    }
    if (most == nullptr) continue;
    add_ratio(effects, {.what = concat("FLOP/s at ", std::llround(most->x), ", the most, over those at ", std::llround(least->x),
                                       ", the least, ", series),
                        .of = RatioOf::rates,
                        .over = most,
                        .under = least});
  }
  return effects;
}

}  // namespace

Figure sweep_figure(const Sweep& sweep) {
  return {.name = "sweep",
          .references = "one of your own",
          .shows = "throughput, time and tiles over a size",
          .axis = sweep.axis,
          .panels = kSweepPanels,
          .points = [sweep](const FigureSetting& setting) { return sweep_points(sweep, setting); },
          .effects = sweep_effects};
}

}  // namespace tilewave

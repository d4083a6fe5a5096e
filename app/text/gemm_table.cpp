#include "app/text/gemm_table.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include "app/text/size_text.h"
#include "app/text/table.h"
#include "app/text/units.h"
#include "models/planning/launch_limit.h"
#include "models/planning/wave_free.h"

namespace tilewave {
namespace {

std::vector<Column> columns() {
  return {{.heading = "role", .align = Align::left},
          {.heading = "count"},
          {.heading = "MxNxK"},
          {.heading = "alignment of A, B, D", .align = Align::left, .rank = 7},
          {.heading = "FLOP/B", .rank = 8},
          {.heading = "limit", .align = Align::left, .rank = 1},
          {.heading = "kernel/tile", .align = Align::left},
          {.heading = "tiles", .rank = 9},
          {.heading = "useful", .rank = 5},
          {.heading = "CTAs per SM", .rank = 10},
          {.heading = "waves", .rank = 3},
          {.heading = "tail", .rank = 4},
          {.heading = "roofline time", .rank = 6},
          {.heading = "predicted time"},
          {.heading = "share", .rank = 2}};
}

std::string alignment_text(const GemmProblem& problem) {
  return concat(name_of(problem.a_major), problem.a_alignment, ' ', name_of(problem.b_major), problem.b_alignment, ' ',
                name_of(problem.d_major), problem.d_alignment);
}

bool tail_shows(const GemmPlan& plan) { return plan.items() < kTailsMatterBelow && waves_of(plan).efficiency < kWaveFreeEfficiency; }

std::vector<std::string> cells_of(const GemmLine& line, const GemmRows& gemms) {
  const GemmProblem& problem = line.problem;
  const GemmPlan& plan = line.plan;
  const PlanWaves waves = waves_of(plan);
  return {concat(name_of(problem.role), tail_shows(plan) ? "*" : ""),
          count_text(line.count),
          size_text(problem),
          alignment_text(problem),
          number_text(intensity(cost_of(problem)), "%.4g"),
          std::string(name_of(limit_of(problem, plan, gemms.device))),
          name_of(plan),
          count_text(plan.tiling.tiles),
          percent_text(plan.tiling.useful_fraction),
          count_text(ctas_per_sm(plan, gemms.device)),
          number_text(waves.waves, "%.2f"),
          percent_text(waves.tail_fraction),
          time_text(roofline_s(line, gemms.device)),
          time_text(predicted_or_nan(line.predicted_s(), gemms.device)),
          percent_text(line.predicted_s() / gemms.step_s)};
}

}  // namespace

void print_gemms(std::ostream& stream, const GemmRows& gemms, const Page& page) {
  std::vector<std::string> layers;
  for (const GemmLine& line : gemms.lines) {
    if (std::ranges::find(layers, line.layer) == layers.end()) layers.push_back(line.layer);
  }
  Table table(columns());
  for (const std::string& layer : layers) {
    table.section(layer);
    for (const GemmLine& line : gemms.lines) {
      if (line.layer == layer) table.add(cells_of(line, gemms));
    }
  }
  table.print(stream, page);
  if (std::ranges::any_of(gemms.lines, [](const GemmLine& line) { return tail_shows(line.plan); })) {
    stream << wrapped(concat("* fewer than ", kTailsMatterBelow, " CTAs, and more than ", percent_text(1.0 - kWaveFreeEfficiency, 0),
                             " of their waves idle: a tail that shows"),
                      page)
           << '\n';
  }
}

}  // namespace tilewave

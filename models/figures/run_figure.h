// The one loop behind every figure: each point predicted, and measured where there is the device, those of one place in turns.
#pragma once

#include <functional>
#include <optional>

#include "kernels/core/queue.h"
#include "models/figures/figure.h"

namespace tilewave {

struct FigureRequest {
  const Figure& figure;
  const FigureSetting& setting;
  std::optional<Queue> queue;  // without one nothing is measured
  int rounds = 5;
  FigureRecords known;  // of an earlier run: what is measured there, by the same plan, is not measured again
  // Hears of every place as it is done, with all records so far; true stops.
  std::function<bool(const FigureRecords& records, std::size_t all)> place_done = nullptr;
};

struct FigureRun {
  FigurePoints asked;
  FigureRecords records;
  std::size_t measured = 0, reused = 0;
  bool stopped = false;
};

// Throws InputError where the device has no units for the precision, or none of the points can be asked for.
FigureRun run_figure(const FigureRequest& request);

// What the points will take to measure, roughly, by their predictions; 0 where nothing is.
double estimated_seconds(const FigureRecords& records, int rounds);

}  // namespace tilewave

// The numbers that a figure's claim comes down to, from its points.
#pragma once

#include "models/figures/figure.h"

namespace tilewave {

// A point by its series and its place, or its label where that is given.
struct PointName {
  std::string series;
  double x = 0.0;
  std::string label = {};
  std::string group = {};
};
const FigureRecord* find_record(const FigureRecords& records, const PointName& name);

// `over` divided by `under`, in time or in FLOP/s, predicted and measured. The range of a measured ratio is that of its quartiles. Nothing
// where a point is not there.
enum class RatioOf : std::uint8_t { times, rates };
struct Ratio {
  std::string what;
  RatioOf of = RatioOf::times;
  const FigureRecord* over = nullptr;
  const FigureRecord* under = nullptr;
};
void add_ratio(std::vector<Effect>& effects, const Ratio& ratio);

// Of each series the FLOP/s at its last place over those at its first: "FLOP/s at batch 16384 over those at 32, forward" with "batch "
// before the place.
struct PlaceWords {
  std::string_view before = {}, behind = {};
};
std::vector<Effect> last_over_first(const FigureRecords& records, const PlaceWords& words);

// Names of the series that are there, each once, in their order.
std::vector<std::string> series_of(const FigureRecords& records);
// The records of a series, and of a group where one is named.
std::vector<const FigureRecord*> records_of(const FigureRecords& records, std::string_view series, std::string_view group = {});

// The mean of |predicted / measured - 1| over the points that have both, and how many they are; NaN and 0 without any.
struct PredictionError {
  double mean = NAN;
  std::size_t points = 0;
};
PredictionError prediction_error(const FigureRecords& records);

}  // namespace tilewave

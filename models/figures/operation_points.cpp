#include "models/figures/operation_points.h"

#include <algorithm>

#include "kernels/core/error.h"
#include "models/figures/effects.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

constexpr std::int64_t kOperationCols = 1024;

}  // namespace

FigurePoints operation_points(std::span<const NamedOperation> operations, const FigureSetting& setting) {
  FigurePoints figure;
  for (std::int64_t rows = 256; rows <= 65536; rows *= 2) {
    const Shape shape{setting.sized(rows), kOperationCols};
    for (const NamedOperation& one : operations) {
      FigurePoint& point = figure.points.emplace_back();
      point.series = one.series;
      point.group = one.group;
      point.x = static_cast<double>(shape.rows * shape.cols);
      point.operation = one.operation;
      point.shape = shape;
    }
  }
  figure.how = concat("Rows of ", kOperationCols, " features, 256 to 65536 of them, aligned.", toy_text(setting));
  return figure;
}

std::vector<Effect> operation_effects(const FigureRecords& records) {
  std::vector<Effect> effects;
  const std::vector<std::string> series = series_of(records);
  std::vector<std::string> groups;
  for (const FigureRecord& record : records) {
    if (std::ranges::find(groups, record.group) == groups.end()) groups.push_back(record.group);
  }
  for (const std::string& group : groups) {
    for (const std::string& one : series) {
      const std::vector<const FigureRecord*> all = records_of(records, one, group);
      if (all.empty()) continue;
      const std::string name = group.empty() ? one : concat(one, ", ", group);
      add_ratio(effects, {.what = concat("time of ", std::llround(all.back()->x), " elements over that of a quarter of them, ", name),
                          .over = all.back(),
                          .under = find_record(records, {.series = one, .x = all.back()->x / 4, .group = group})});
    }
  }
  return effects;
}

}  // namespace tilewave

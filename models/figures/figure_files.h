// What a figure's points are kept as: NAME.jsonl, which a later run continues from, and NAME.csv.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "models/figures/figure.h"

namespace tilewave {

// What was asked, the first line of NAME.jsonl.
struct FigureHead {
  std::string figure, device;
  std::int64_t sm_count = 0;
  std::string precision;
  bool printed = false;
  std::string how, command, commit;
};

std::string jsonl_of(const FigureHead& head, const FigureRecords& records);
std::string csv_of(const FigureRecords& records);

struct StoredFigure {
  FigureHead head;
  FigureRecords records;
};
// InputError where the file is none of these; nothing where there is no file.
std::optional<StoredFigure> read_figure(const std::filesystem::path& path);

}  // namespace tilewave

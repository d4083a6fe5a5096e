#include "app/commands/figure_folder.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "app/text/plotter.h"
#include "framework/io/file.h"
#include "kernels/core/error.h"

namespace tilewave {

FigureFolder::FigureFolder(std::filesystem::path path) : path_(std::move(path)) {
  check_output_folder("--out", path_);
  make_folders(path_);
}

FigureRecords FigureFolder::known(const FigureHead& head) const {
  const std::filesystem::path file = path_ / (head.figure + ".jsonl");
  std::optional<StoredFigure> stored = read_figure(file);
  if (!stored) return {};
  const FigureHead& other = stored->head;
  const auto asked = [](const FigureHead& one) { return std::tie(one.device, one.sm_count, one.precision, one.printed); };
  const bool measured = std::ranges::any_of(stored->records, &FigureRecord::measured);
  TW_CHECK_INPUT(!measured || asked(other) == asked(head), file.string(), " holds what was measured on ", other.device, " in ",
                 other.precision, other.printed ? ", as printed" : "", "; name another folder with --out, or remove it.");
  return asked(other) == asked(head) ? std::move(stored->records) : FigureRecords();
}

void FigureFolder::keep(const FigureHead& head, const FigureRecords& records) const {
  write(head.figure + ".jsonl", jsonl_of(head, records));
}

void FigureFolder::write(const std::string& name, const std::string& text) const { write_file_atomically(path_ / name, text); }

void FigureFolder::draw_charts(const std::vector<Chart>& charts) const {
  if (charts.empty()) return;
  for (const Chart& chart : charts) write(chart.name + ".svg", svg_of(chart));
  write("charts.json", json_of(charts));
  draw(path_ / "charts.json", "the .png beside each .svg");
}

}  // namespace tilewave

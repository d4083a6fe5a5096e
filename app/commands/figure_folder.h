// The folder that figures are written to: each one's points and pictures, the page over all of them, and what an earlier run measured.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/text/chart.h"
#include "app/text/figures_page.h"
#include "models/figures/figure_files.h"

namespace tilewave {

class FigureFolder {
 public:
  // Made where it is not there. InputError where it cannot be.
  explicit FigureFolder(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }

  // What is stored of the figure. InputError where it was asked of another device, precision or sizes, whose measured points would go.
  FigureRecords known(const FigureHead& head) const;
  void keep(const FigureHead& head, const FigureRecords& records) const;  // NAME.jsonl, at once
  void write(const std::string& name, const std::string& text) const;

  // Every SVG and, where python3 has matplotlib, PNG; the page. Where there is none, a sentence on stderr says so.
  void draw_charts(const std::vector<Chart>& charts) const;

 private:
  std::filesystem::path path_;
};

}  // namespace tilewave

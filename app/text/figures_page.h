// figures.html: every figure with its picture, the guide's claim, what this device says of it, and its points as a table. Nothing beside
// it.
#pragma once

#include <string>
#include <vector>

#include "models/figures/checklist.h"
#include "models/figures/figure.h"

namespace tilewave {

struct PagedFigure {
  const Figure* figure = nullptr;
  std::string how, command;
  FigureRecords records;
  std::vector<Effect> effects;
  std::vector<std::string> pictures;  // SVG
  std::vector<ChecklistLine> checklist;
  std::string absent;  // why there is nothing to show
};

struct FiguresPage {
  std::string title;               // "The guides' figures on NVIDIA H200 (132 SMs), fp16"
  std::vector<std::string> notes;  // what to know of all of them
  std::vector<PagedFigure> figures;
};
std::string figures_page(const FiguresPage& page);

}  // namespace tilewave

// What unicode.cpp looks up, as unicode_tables.py writes it: each run begins at `first` and ends where the next one begins.
#pragma once

#include <cstdint>
#include <span>

#include "framework/data/unicode.h"

namespace tilewave {

struct CategoryRun {
  char32_t first;
  GeneralCategory category;
};
struct ClassRun {
  char32_t first;
  std::uint8_t combining_class;
};
struct Decomposition {
  char32_t composed, first, second;  // second is 0 where one character stands for another
  bool composes;                     // back, that is: it is no exclusion
};

std::span<const CategoryRun> category_runs();
std::span<const ClassRun> combining_runs();
std::span<const Decomposition> decompositions();

}  // namespace tilewave

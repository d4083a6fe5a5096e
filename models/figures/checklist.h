// The guide's checklist (Deep Learning Performance, chapter 2), answered for a recipe on a device from its plan.
#pragma once

#include <string>
#include <vector>

#include "models/planning/plan.h"

namespace tilewave {

enum class Answer : std::uint8_t { yes, mostly, no };
constexpr std::string_view name_of(Answer answer) {
  constexpr std::string_view names[] = {"yes", "mostly", "no"};
  return names[static_cast<int>(answer)];
}

struct ChecklistLine {
  std::string chapter;    // "enable Tensor Cores"
  std::string guideline;  // as a question
  Answer answer = Answer::yes;
  double share = 1.0;  // of the GEMMs' predicted time, of which it is true; of the last line: of the step's
  std::string detail;  // which layers it is not true of, the longest first, or nothing
};

std::vector<ChecklistLine> checklist_of(const Recipe& recipe, const DeviceInfo& device);

}  // namespace tilewave

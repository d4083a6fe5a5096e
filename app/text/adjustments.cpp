#include "app/text/adjustments.h"

#include <algorithm>
#include <ostream>

#include "app/text/units.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

// "wave_free_batch: target rows 4096 -> 4224, why; rows of a pass +128; memory +3.0 MiB"
std::string adjustment_text(const Adjustment& adjustment) {
  std::string text = concat(adjustment.rule, ": ", adjustment.what, ' ', adjustment.from);
  text += adjustment.to == adjustment.from ? " stay, " : concat(" -> ", adjustment.to, ", ");
  text += adjustment.why;
  if (adjustment.cost_tokens != 0) text += concat("; rows of a pass ", signed_count_text(adjustment.cost_tokens));
  if (adjustment.cost_bytes != 0) text += concat("; memory ", signed_bytes_text(adjustment.cost_bytes));
  return text;
}

}  // namespace

void print_adjustments(std::ostream& stream, const ResolvedRecipe& resolved, const Page& page) {
  for (const Adjustment& adjustment : resolved.adjustments) stream << wrapped(adjustment_text(adjustment), page) << '\n';
}

void print_adjustments(std::ostream& stream, const std::vector<AdjustedSetting>& settings, const Page& page) {
  std::vector<Adjustment> all;
  for (const AdjustedSetting& setting : settings) {
    for (const Adjustment& one : setting.adjustments) {
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
    }
  }
  if (!all.empty()) stream << "\nwhat the guidelines made of it\n";
  for (const Adjustment& adjustment : all) {
    std::string names;
    std::size_t count = 0;
    for (const AdjustedSetting& setting : settings) {
      if (std::find(setting.adjustments.begin(), setting.adjustments.end(), adjustment) == setting.adjustments.end()) continue;
      names += concat(names.empty() ? "" : ", ", setting.name);
      ++count;
    }
    stream << wrapped(concat("  ", adjustment_text(adjustment)), page) << '\n'
           << wrapped(concat("    in ", count == settings.size() ? "every setting" : names), page) << '\n';
  }
}

}  // namespace tilewave

// An ablation on a terminal: the answer, the settings beside each other, what the guidelines made of them, their GEMMs, their losses, and a
// sentence for each setting at the end. docs/use/ablate.md explains the columns.
#pragma once

#include <filesystem>
#include <iosfwd>

#include "app/text/page.h"
#include "models/study/ablation.h"

namespace tilewave {

struct AblationText {
  const AblationReport& report;
  const std::filesystem::path& folder;
  int rounds = 0;
};
void print_ablation(std::ostream& stream, const AblationText& text, const Page& page);

}  // namespace tilewave

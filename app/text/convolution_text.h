// A convolution's answer: its three GEMMs as the guide's table 4 has them, what an implicit one of each is predicted to take and what
// tilewave's launches are. docs/use/plan.md explains the columns.
#pragma once

#include <iosfwd>
#include <vector>

#include "app/text/page.h"
#include "models/planning/convolution_answer.h"

namespace tilewave {

struct ConvolutionText {
  const ConvolutionQuestion& question;
  const std::vector<ConvolutionPhase>& phases;
  const DeviceInfo& device;
};
void print_convolution(std::ostream& stream, const ConvolutionText& text, const Page& page);
// A line for the convolution, and one for each phase.
void print_convolution_json(std::ostream& stream, const ConvolutionText& text);

}  // namespace tilewave

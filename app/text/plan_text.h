// A plan for a person: the answer first (what the step takes, what bounds it, what would be better), then the tables it comes from.
// docs/use/plan.md explains the columns.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "app/text/convolution_text.h"
#include "app/text/page.h"
#include "models/planning/gemm_answer.h"
#include "models/planning/operation_answer.h"
#include "models/planning/plan_json.h"
#include "models/planning/real_tokens.h"

namespace tilewave {

// A device, and the SMs it has of its own where --sm gave it another number.
struct PlannedDevice {
  DeviceInfo info;
  std::int64_t own_sms = 0;
};

struct StepText {
  const PlannedRecipe& planned;
  const PlannedDevice& device;
  const RealTokenCounter& tokens;
  std::string run = {};  // what steps of it cost, if that was asked
};
void print_plan(std::ostream& stream, const StepText& text, const Page& page);

// GEMMs by themselves, in a precision.
struct ExerciseText {
  const std::vector<GemmLine>& lines;
  const std::vector<GemmQuestion>& questions;  // that the lines answer
  const PlannedDevice& device;
  Precision precision{};
};
void print_exercise(std::ostream& stream, const ExerciseText& text, const Page& page);

void print_convolution_answer(std::ostream& stream, const ConvolutionText& text, const PlannedDevice& device, const Page& page);
void print_operation_answer(std::ostream& stream, const OperationAnswer& answer, const PlannedDevice& device, const Page& page);

}  // namespace tilewave

// Answers to a student: of GEMMs by themselves what bounds each and by how much, and which sizes near it are better; of an operation that
// is no GEMM its bytes and time; of a run its hours and money. docs/use/plan.md explains them.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "app/text/page.h"
#include "models/planning/gemm_answer.h"
#include "models/planning/operation_answer.h"
#include "models/planning/step_error.h"

namespace tilewave {

// FLOPs, bytes and rate of one GEMM, what bounds it by how much, and its tiles beside the guide's four per SM: a line each.
std::string facts_text(const GemmLine& line, const DeviceInfo& device);
// Whole waves, the batch from which math limits it, multiples, better sizes.
void print_answer(std::ostream& stream, const GemmQuestion& question, const DeviceInfo& device, const Page& page);
void print_answer_json(std::ostream& stream, const GemmQuestion& question, const DeviceInfo& device);

void print_operation(std::ostream& stream, const OperationAnswer& answer, const DeviceInfo& device, const Page& page);
void print_operation_json(std::ostream& stream, const OperationAnswer& answer, const DeviceInfo& device);

// Steps of a run on one GPU, and what they cost.
struct RunCost {
  std::int64_t steps = 0;
  double tokens = 0.0;  // real target tokens of them all
  double seconds = 0.0;
  std::optional<double> price_per_hour;
  StepError error;

  double hours() const { return seconds / 3600.0; }
};
std::string text_of(const RunCost& cost);
void print_run_json(std::ostream& stream, const RunCost& cost);

}  // namespace tilewave

#include "models/figures/checklist.h"

#include <algorithm>
#include <functional>

#include "kernels/core/error.h"
#include "kernels/gemm/catalog.h"
#include "models/planning/launch_limit.h"
#include "models/planning/resolve.h"

namespace tilewave {
namespace {

constexpr double kMostly = 0.9, kNearlyAll = 0.995, kEfficient = 0.95;
constexpr std::int64_t kBlocksPerSm = 4, kLeastDimension = 128;  // Deep Learning Performance, sections 3.2 and 2.4
constexpr std::size_t kNamedLayers = 3;

Answer answer_of(double share) { return share >= kNearlyAll ? Answer::yes : share >= kMostly ? Answer::mostly : Answer::no; }

std::string line_text(const GemmLine& line) {
  const GemmProblem& p = line.problem;
  return concat(line.layer, ' ', name_of(p.role), " (", p.m, 'x', p.n, 'x', p.k, ')');
}

// A question that each GEMM answers with yes or no.
struct Question {
  std::string chapter, guideline;
  std::function<bool(const GemmLine& line)> holds;
};

ChecklistLine answered(const Question& question, const StepPlan& step) {
  std::vector<const GemmLine*> others;
  double held = 0.0;
  for (const GemmLine& line : step.gemms) {
    if (question.holds(line)) {
      held += line.predicted_s();
    } else {
      others.push_back(&line);
    }
  }
  std::ranges::stable_sort(others, [](const GemmLine* a, const GemmLine* b) { return a->predicted_s() > b->predicted_s(); });
  ChecklistLine line = {
      .chapter = question.chapter, .guideline = question.guideline, .share = step.gemm_s > 0.0 ? held / step.gemm_s : 1.0};
  line.answer = answer_of(line.share);
  for (std::size_t i = 0; i < std::min(others.size(), kNamedLayers); ++i)
    line.detail += concat(i == 0 ? "not " : ", ", line_text(*others[i]));
  if (others.size() > kNamedLayers) line.detail += concat(" and ", others.size() - kNamedLayers, " others");
  return line;
}

std::vector<Question> questions(const DeviceInfo& device) {
  const char *cores = "enable Tensor Cores", *efficiency = "maximise execution efficiency", *math = "operate math-limited";
  return {
      {cores, "do GEMMs run on Tensor Cores?", [&](const GemmLine& line) { return kernel_of(device.backend, line.plan).tensor_cores; }},
      {cores, "are K and the fastest-varying dimensions multiples of 16 bytes?",
       [](const GemmLine& line) { return strictly_aligned(line.problem); }},
      {cores, "does every row start on 16 bytes, as a pitch may see to?",
       [](const GemmLine& line) {
         const GemmProblem& p = line.problem;
         return std::min({p.a_alignment, p.b_alignment, p.d_alignment}) >= 16;
       }},
      {efficiency, "do tiles fit, at most 5 % of them padding?",
       [](const GemmLine& line) { return line.plan.tiling.useful_fraction >= kEfficient; }},
      {efficiency, "are waves whole or just below, at most 5 % idle?",
       [](const GemmLine& line) { return waves_of(line.plan).efficiency >= kEfficient; }},
      {efficiency, "are there 4 tiles for every SM, so that a tail hardly shows?",
       [&](const GemmLine& line) { return line.plan.items() >= kBlocksPerSm * device.sm_count; }},
      {math, "are batch, inputs and outputs more than 128?",
       [](const GemmLine& line) {
         return std::min({line.problem.m, line.problem.n, line.problem.k}) > kLeastDimension;
       }},
      {math, "are GEMMs limited by math?", [&](const GemmLine& line) { return limit_of(line.problem, line.plan, device) == Limit::math; }},
  };
}

}  // namespace

std::vector<ChecklistLine> checklist_of(const Recipe& recipe, const DeviceInfo& device) {
  check_plannable(recipe, device);
  RealTokenCounter tokens(recipe);
  const ResolvedRecipe resolved = resolve(predictable(recipe), {}, device, tokens);
  const StepPlan step = plan_step(resolved, device);
  std::vector<ChecklistLine> lines;
  for (const Question& question : questions(device)) lines.push_back(answered(question, step));
  const double share = step.predicted_s() > 0.0 ? step.gemm_s / step.predicted_s() : 1.0;
  lines.push_back({.chapter = "operate math-limited",
                   .guideline = "is the step's time in GEMMs, and not in what memory limits?",
                   .answer = answer_of(share),
                   .share = share,
                   .detail = step.operations.empty() ? ""
                                                     : concat("the longest other is ", step.operations.front().operation, " of ",
                                                              step.operations.front().layer)});
  return lines;
}

}  // namespace tilewave

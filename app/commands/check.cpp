// tilewave check RECIPE: every gradient against central differences, as a table; exit code 1 where one disagrees.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <utility>

#include "app/options/command.h"
#include "framework/io/json_lines.h"
#include "models/study/gradient_check.h"

namespace tilewave {
namespace {

struct Options {
  RecipeOptions recipe;
  DeviceOptions device;
  GradientCheckOptions check;
  bool json = false;
};

template <class... Values>
void print_line(const char* format, const Values&... values) {
  char line[256];
  std::snprintf(line, sizeof line, format, values...);
  std::cout << line << std::endl;  // at once: a large model's tensors come seconds apart
}

std::string list(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) text += (i == 0 ? "" : " and ") + std::to_string(numbers[i]);
  return text;
}

void print_plan(const Recipe& recipe, const GradientCheckPlan& plan, const DeviceInfo& device) {
  const StepShapes& shapes = plan.resolved.shapes;
  std::cout << recipe.name << " in double precision on " << (device.backend == Backend::cpu ? "the CPU" : device.name) << ": ";
  if (shapes.source_rows > 0) std::cout << shapes.source_rows << " source rows (sequences of " << list(plan.source_lengths) << "), ";
  std::cout << shapes.target_rows << " target rows (sequences of " << list(plan.target_lengths) << "), the rest padding rows\n";
  for (const Reduction& reduction : plan.reductions) {
    std::cout << "made smaller to be probed: " << reduction.key << " = " << reduction.to << ", where the recipe says " << reduction.from
              << '\n';
  }
  print_line("%-21s  %-38s  %-12s  %6s  %9s  %9s", "layer", "tensor", "shape", "probes", "norm", "error");
}

void print_row(const GradientCheckRow& row) {
  print_line("%-21s  %-38s  %-12s  %6lld  %9.3e  %9.3e  %s", row.layer.c_str(), row.tensor.c_str(), concat(row.shape).c_str(),
             static_cast<long long>(row.probes), row.norm, row.error, row.passed ? "pass" : "FAIL");
}

void print_verdict(const GradientCheckReport& report) {
  const auto failed = std::count_if(report.rows.begin(), report.rows.end(), [](const GradientCheckRow& row) { return !row.passed; });
  if (failed == 0) {
    print_line("all %zu gradients agree with central differences within %.0e", report.rows.size(), report.tolerance);
  } else {
    print_line("%lld of %zu gradients differ from central differences by more than %.0e", static_cast<long long>(failed),
               report.rows.size(), report.tolerance);
  }
}

void print_json(const GradientCheckPlan& plan) {
  for (const Reduction& reduction : plan.reductions) {
    std::cout << JsonObject().add("reduced", reduction.key).add("from", reduction.from).add("to", reduction.to).text() << '\n';
  }
}

void print_json(const GradientCheckRow& row) {
  std::cout << JsonObject()
                   .add("layer", row.layer)
                   .add("tensor", row.tensor)
                   .add("rows", row.shape.rows)
                   .add("cols", row.shape.cols)
                   .add("probes", row.probes)
                   .add("norm", row.norm)
                   .add("error", row.error)
                   .add("passed", row.passed)
                   .text()
            << std::endl;
}

void print_json(const GradientCheckReport& report) {
  std::cout << JsonObject().add("tensors", report.rows.size()).add("tolerance", report.tolerance).add("passed", report.passed()).text()
            << '\n';
}

int check(const Options& options) {
  const Recipe recipe = options.recipe.read();
  GradientCheckOptions where = options.check;
  if (const DeviceInfo device = options.device.probe(); device.backend == Backend::cuda) {
    where.queue = options.device.make_queue(device);
    where.device = device;
  }
  const GradientCheckPlan plan = plan_gradient_check(recipe);
  bool begun = false;  // a refusal prints nothing but itself
  const GradientCheckReport report = check_gradients(plan, where, [&](const GradientCheckRow& row) {
    if (!std::exchange(begun, true)) options.json ? print_json(plan) : print_plan(recipe, plan, where.device);
    options.json ? print_json(row) : print_row(row);
  });
  options.json ? print_json(report) : print_verdict(report);
  return report.passed() ? 0 : 1;
}

}  // namespace

Command add_check(CLI::App& program) {
  CLI::App* command = program.add_subcommand("check", "compare every gradient of a recipe's model with central differences");
  const auto options = std::make_shared<Options>();
  options->recipe.add_to(*command);
  options->device.add_to(*command);
  command->add_option("--layer", options->check.layer, "check this layer alone, or `model` for the whole model");
  command->add_option("--plant", options->check.plant, "add a wrong term to this operation's backward pass: the check must fail")
      ->type_name("OPERATION");
  command->add_option("--seed", options->check.seed, "of weights, inputs, dropout and samples")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--json", options->json, "one JSON object a line: what was made smaller, each tensor, the verdict");
  return {command, [options] { return check(*options); }};
}

}  // namespace tilewave

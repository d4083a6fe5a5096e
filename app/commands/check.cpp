// tilewave check RECIPE: every gradient against central differences, as a table; exit code 1 where one disagrees.
#include <algorithm>
#include <iostream>
#include <optional>
#include <utility>

#include "app/options/command.h"
#include "app/text/table.h"
#include "app/text/units.h"
#include "framework/io/json_lines.h"
#include "models/study/gradient_check.h"

namespace tilewave {
namespace {

struct CheckArguments {
  RecipeOptions recipe;
  DeviceOptions device;
  GradientCheckOptions check;
  PageOptions page;
  bool json = false;
};

std::string list(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) text += (i == 0 ? "" : " and ") + std::to_string(numbers[i]);
  return text;
}

std::string rows_text(const GradientCheckPlan& plan) {
  const StepShapes& shapes = plan.resolved.shapes;
  if (classifies(plan.resolved.recipe.model)) {
    return concat(shapes.target_rows, " pictures of ", shapes.source_rows / shapes.target_rows, " patches each, the last one padding");
  }
  const std::string source =
      shapes.source_rows > 0 ? concat(shapes.source_rows, " source rows (sequences of ", list(plan.source_lengths), "), ") : "";
  return concat(source, shapes.target_rows, " target rows (sequences of ", list(plan.target_lengths), "), the rest padding rows");
}

std::string plan_text(const Recipe& recipe, const GradientCheckPlan& plan, const DeviceInfo& device) {
  std::string text =
      concat(recipe.name, " in double precision on ", device.backend == Backend::cpu ? "the CPU" : device.name, ": ", rows_text(plan));
  for (const Reduction& reduction : plan.reductions) {
    text += concat("\nmade smaller to be probed: ", reduction.key, " = ", reduction.to, ", where the recipe says ", reduction.from);
  }
  return text;
}

std::vector<Column> columns() {
  return {{.heading = "layer", .align = Align::left, .width = 21},
          {.heading = "tensor", .align = Align::left, .width = 34},
          {.heading = "shape", .rank = 2, .width = 11},
          {.heading = "probes", .rank = 3, .width = 6},
          {.heading = "norm", .rank = 1, .width = 9},
          {.heading = "error", .width = 9},
          {.heading = "verdict", .align = Align::left, .width = 7}};
}

std::vector<std::string> cells_of(const GradientCheckRow& row) {
  return {row.layer,
          row.tensor,
          concat(row.shape),
          count_text(row.probes),
          number_text(row.norm, "%.3e"),
          number_text(row.error, "%.3e"),
          row.passed ? "pass" : "FAIL"};
}

std::string verdict_text(const GradientCheckReport& report) {
  const auto failed = std::ranges::count_if(report.rows, [](const GradientCheckRow& row) { return !row.passed; });
  const std::string within = number_text(report.tolerance, "%.0e");
  return failed == 0 ? concat("all ", report.rows.size(), " gradients agree with central differences within ", within)
                     : concat(failed, " of ", report.rows.size(), " gradients differ from central differences by more than ", within);
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

int check(const CheckArguments& options) {
  const Recipe recipe = options.recipe.read();
  GradientCheckOptions where = options.check;
  if (const DeviceInfo device = options.device.probe(); device.backend == Backend::cuda) {
    where.queue = options.device.make_queue(device);
    where.device = device;
  }
  const GradientCheckPlan plan = plan_gradient_check(recipe);
  const Page page = options.page.of_stdout();
  std::optional<LiveTable> table;  // begun with the first row: a refusal prints nothing but itself
  bool begun = false;
  const GradientCheckReport report = check_gradients(plan, where, [&](const GradientCheckRow& row) {
    const bool first = !std::exchange(begun, true);
    if (options.json) {
      if (first) print_json(plan);
      print_json(row);
      return;
    }
    if (first) {
      std::cout << wrapped(plan_text(recipe, plan, where.device), page) << '\n';
      table.emplace(std::cout, page, columns());
    }
    table->add(cells_of(row));
  });
  if (table) table->end();
  options.json ? print_json(report) : void(std::cout << wrapped(verdict_text(report), page) << '\n');
  return report.passed() ? 0 : 1;
}

}  // namespace

Command add_check(CLI::App& program) {
  CLI::App* command = program.add_subcommand("check", "compare every gradient of a recipe's model with central differences");
  const auto options = std::make_shared<CheckArguments>();
  options->recipe.add_to(*command);
  options->device.add_to(*command);
  command->add_option("--layer", options->check.layer, "check this layer alone, or `model` for the whole model");
  command->add_option("--plant", options->check.plant, "add a wrong term to this operation's backward pass: the check must fail")
      ->type_name("OPERATION");
  command->add_option("--seed", options->check.seed, "of weights, inputs, dropout and samples")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--json", options->json, "one JSON object a line: what was made smaller, each tensor, the verdict");
  options->page.add_to(*command);
  return {command, [options] { return check(*options); }};
}

}  // namespace tilewave

// What the commands of the command line share. Each command's file adds its subcommand with its options and returns what runs it:
// an exit code, 0 done or 1 failed; InputError becomes 2, any other Error 1, both with their sentence on stderr.
// Results go to stdout, diagnostics and progress to stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/text/page.h"
#include "framework/tensor/context.h"
#include "models/recipe/recipe.h"

namespace tilewave {

using Action = std::function<int()>;

struct Command {
  CLI::App* app = nullptr;
  Action action;
};

enum class Output : std::uint8_t { table, json };

Command add_train(CLI::App& program, const std::string& commit);  // which ranks must share
Command add_translate(CLI::App& program);
Command add_generate(CLI::App& program);
Command add_check(CLI::App& program);
Command add_step(CLI::App& program);
Command add_inspect(CLI::App& program);
Command add_plan(CLI::App& program);
Command add_ablate(CLI::App& program);
Command add_guidelines(CLI::App& program);
Command add_figures(CLI::App& program, const std::string& commit);  // which its files name
Command add_bench(CLI::App& program);
Command add_tokenize(CLI::App& program);
Command add_devices(CLI::App& program);
Command add_completion(CLI::App& program);
Command add_man(CLI::App& program);
Command add_schema(CLI::App& program);
Command add_import(CLI::App& program);
Command add_export(CLI::App& program);
Command add_report(CLI::App& program);
Command add_evaluate(CLI::App& program);
Command add_classify(CLI::App& program);
Command add_caption(CLI::App& program);

// RECIPE and --set, as every command that reads a recipe has them.
struct RecipeOptions {
  std::filesystem::path path;
  std::vector<std::string> overrides;

  CLI::Option* add_to(CLI::App& command);  // the recipe's, required
  Recipe read() const { return read_recipe(path, overrides); }
};

// --wide. Called behind --json, with which it does not go.
struct PageOptions {
  Columns columns = Columns::fitting;

  void add_to(CLI::App& command);
  Page of_stdout() const;
  Page of_stderr() const;
};

// What a person should read beside the results, a line each on stderr.
void print_notes(const std::vector<std::string>& notes);

// The device of the profile that --for names; what else the name stands for is said on stderr.
DeviceInfo profile_named(const std::string& name);

// --device and --threads.
struct DeviceOptions {
  std::string device = "auto";
  int threads = 0;

  void add_to(CLI::App& command);
  // What --device names: auto is the first GPU that can be used, else the CPU. InputError for another word, Error with the reason
  // where a GPU was asked for and none can be used.
  // A GPU that was calibrated has its own cost model; one whose calibration cannot be used is said on stderr.
  DeviceInfo probe() const;
  Queue make_queue(const DeviceInfo& probed) const;
};

// --ranks and --gpus, of commands that several processes can run together.
struct RankOptions {
  std::int64_t ranks = 0, gpus = 0;  // 0: as the recipe says

  void add_to(CLI::App& command);
  std::int64_t wanted() const { return std::max(ranks, gpus); }
  // Over what the recipe and --device say.
  void apply(RecipeOptions& recipe) const;
  void apply(DeviceOptions& device) const;
};

}  // namespace tilewave

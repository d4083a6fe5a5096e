// Options that several commands share.
#include "app/options/command.h"

#include <iostream>
#include <unistd.h>

#include "framework/measure/calibration.h"
#include "framework/measure/device_choice.h"
#include "kernels/core/device_profiles.h"

namespace tilewave {
CLI::Option* RecipeOptions::add_to(CLI::App& command) {
  CLI::Option* recipe = command.add_option("recipe", path, "the recipe, a TOML file (docs/use/recipes.md)")->required();
  command.add_option("--set", overrides, "section.key=value, over what the recipe says; may be repeated")
      ->take_all()
      ->type_name("KEY=VALUE");
  return recipe;
}

void PageOptions::add_to(CLI::App& command) {
  CLI::Option* wide = command.add_flag_callback(
      "--wide", [this] { columns = Columns::all; }, "print every column of a table, and lines as long as they come, whatever the width");
  if (CLI::Option* json = command.get_option_no_throw("--json")) wide->excludes(json);
}

Page PageOptions::of_stdout() const { return page_of(STDOUT_FILENO, columns); }
Page PageOptions::of_stderr() const { return page_of(STDERR_FILENO, columns); }

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::cerr << "tilewave: " << note << '\n';
}

DeviceInfo profile_named(const std::string& name) {
  DeviceInfo device = device_profile(name).device;
  const std::string note = profile_note(name);
  if (!note.empty()) print_notes({note});
  return device;
}

void DeviceOptions::add_to(CLI::App& command) {
  command.add_option("--device", device, "where to run: auto, cpu, cuda or cuda:N")->capture_default_str();
  command.add_option("--threads", threads, "CPU threads; 0 takes every one the process may use")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
}

void RankOptions::add_to(CLI::App& command) {
  CLI::Option* own =
      command.add_option("--ranks", ranks, "processes at work together, each a part of the CPU or a GPU; run.ranks of a recipe")
          ->check(CLI::Range(std::int64_t{1}, std::int64_t{65536}));
  command.add_option("--gpus", gpus, "short for --ranks N --device cuda: a GPU each")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{65536}))
      ->excludes(own);
}

void RankOptions::apply(RecipeOptions& recipe) const {
  if (wanted() > 0) recipe.overrides.push_back(concat("run.ranks=", wanted()));
}

void RankOptions::apply(DeviceOptions& device) const {
  if (gpus == 0) return;
  TW_CHECK_INPUT(device.device == "auto" || device.device == "cuda", "--gpus ", gpus, " and --device ", device.device,
                 " name devices each; leave one of them out.");
  device.device = "cuda";
}

DeviceInfo DeviceOptions::probe() const {
  DeviceInfo found = device_named(device, threads);
  const std::string note = use_calibration(found);
  if (!note.empty()) std::cerr << "tilewave: " << note << '\n';
  return found;
}

Queue DeviceOptions::make_queue(const DeviceInfo& probed) const {
  if (probed.backend == Backend::cuda) return make_cuda_queue(probed.index);
  return make_cpu_queue(threads);
}

}  // namespace tilewave

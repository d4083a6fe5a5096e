// Options that several commands share.
#include "app/command.h"

namespace tilewave {

void RecipeOptions::add_to(CLI::App& command) {
  command.add_option("recipe", path, "the recipe, a TOML file (docs/recipes.md)")->required();
  command.add_option("--set", overrides, "section.key=value, over what the recipe says; may be repeated")
      ->take_all()
      ->type_name("KEY=VALUE");
}

void DeviceOptions::add_to(CLI::App& command) {
  command.add_option("--device", device, "where to run: auto or cpu");
  command.add_option("--threads", threads, "CPU threads; 0 takes every one the process may use")->check(CLI::Range(0, 4096));
}

Backend DeviceOptions::backend() const {
  TW_CHECK_INPUT(device == "auto" || device == "cpu" || device.starts_with("cuda"), "--device ", device,
                 ": there is no such device; use auto or cpu.");
  TW_CHECK(!device.starts_with("cuda"), "--device ", device, ": this build of tilewave has no CUDA kernels; use --device cpu.");
  return Backend::cpu;
}

DeviceInfo DeviceOptions::probe() const {
  backend();
  return probe_cpu(threads);
}

Queue DeviceOptions::make_queue() const {
  backend();
  return make_cpu_queue(threads);
}

}  // namespace tilewave

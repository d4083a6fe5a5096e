// Options that several commands share.
#include "app/command.h"

#include <regex>
#include <string>

namespace tilewave {

void RecipeOptions::add_to(CLI::App& command) {
  command.add_option("recipe", path, "the recipe, a TOML file (docs/recipes.md)")->required();
  command.add_option("--set", overrides, "section.key=value, over what the recipe says; may be repeated")
      ->take_all()
      ->type_name("KEY=VALUE");
}

void DeviceOptions::add_to(CLI::App& command) {
  command.add_option("--device", device, "where to run: auto, cpu, cuda or cuda:N");
  command.add_option("--threads", threads, "CPU threads; 0 takes every one the process may use")->check(CLI::Range(0, 4096));
}

DeviceInfo DeviceOptions::probe() const {
  static const std::regex pattern("auto|cpu|cuda(:([0-9]{1,4}))?");
  std::smatch match;
  TW_CHECK_INPUT(std::regex_match(device, match, pattern), "--device ", device,
                 ": there is no such device; use auto, cpu, cuda or cuda:N.");
  if (device == "cpu") return probe_cpu(threads);
  const CudaDevices gpus = probe_cuda();
  if (device == "auto") return gpus.usable.empty() ? probe_cpu(threads) : gpus.usable.front();
  TW_CHECK(!gpus.usable.empty(), "--device ", device, ": ", gpus.refused);
  if (!match[2].matched) return gpus.usable.front();
  for (const DeviceInfo& gpu : gpus.usable) {
    if (gpu.index == std::stoi(match[2])) return gpu;
  }
  throw Error(sentence("--device ", device, ": there is no such GPU; tilewave devices lists those there are.",
                       gpus.refused.empty() ? "" : " ", gpus.refused));
}

Queue DeviceOptions::make_queue() const {
  const DeviceInfo info = probe();
  if (info.backend == Backend::cuda) return make_cuda_queue(info.index);
  return make_cpu_queue(threads);
}

}  // namespace tilewave

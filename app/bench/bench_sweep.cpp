// tilewave bench sweep: one row and tile on more and more tokens, so that what the last tile and the last wave leave idle can be seen.
#include <charconv>
#include <cstdio>
#include <iostream>

#include "app/bench/bench.h"
#include "app/bench/gemm_suite.h"
#include "framework/io/json_lines.h"
#include "framework/measure/gemm_scratch.h"
#include "framework/measure/interleave.h"
#include "kernels/gemm/plan.h"
#include "models/planning/plan.h"

namespace tilewave {
namespace {

constexpr const char* kCpuChoice = "packed_tiles/256x384";

struct SweepOptions {
  DeviceOptions device;
  std::string layer = "256<-512";
  std::string tokens = "96:3072:96";
  std::string choice;
  bool json = false;
  int rounds = 5;
};

struct PlannedGemm {
  Layer layer;
  GemmProblem problem;
  GemmPlan plan;
};

// "first:last:step"
std::vector<std::int64_t> parse_range(const std::string& text) {
  constexpr std::int64_t kMax = std::int64_t{1} << 31, kMaxValues = 10000;
  std::int64_t numbers[3] = {};
  const char *at = text.data(), *const end = at + text.size();
  bool whole = true;
  for (std::int64_t& number : numbers) {
    if (&number != numbers) whole = whole && at != end && *at++ == ':';
    const auto [behind, error] = std::from_chars(at, end, number);
    whole = whole && error == std::errc() && number > 0 && number < kMax;
    at = behind;
  }
  const auto [first, last, step] = numbers;
  TW_CHECK_INPUT(whole && at == end && last >= first && (last - first) / step < kMaxValues, "--tokens ", text,
                 ": a range is written first:last:step, at most ", kMaxValues, " numbers below 2^31, for example 96:3072:96.");
  std::vector<std::int64_t> values;
  for (std::int64_t value = first; value <= last; value += step) values.push_back(value);
  return values;
}

std::vector<PlannedGemm> planned(const SweepOptions& options, const DeviceInfo& device) {
  const GemmTypes types = parse_gemm_types(device.backend == Backend::cuda ? "bf16" : "f32");
  std::vector<PlannedGemm> gemms;
  for (const std::int64_t tokens : parse_range(options.tokens)) {
    const Layer layer = parse_layer(concat(options.layer, "@", tokens));
    gemms.push_back({.layer = layer, .problem = problem_of({.layer = layer}, types), .plan = {}});
  }
  std::string choice = options.choice;
  if (choice.empty() && device.backend == Backend::cpu) choice = kCpuChoice;
  if (choice.empty()) {
    const GemmPlan most = choose(gemms.back().problem, device);
    choice = concat(most.row, '/', most.tile.m, 'x', most.tile.n);
  }
  for (PlannedGemm& gemm : gemms) gemm.plan = choose(gemm.problem, device, {.forced = choice});
  return gemms;
}

void print_row(const PlannedGemm& gemm, const Timing& timing) {
  const Tiling& tiling = gemm.plan.tiling;
  const PlanWaves waves = waves_of(gemm.plan);
  std::printf("%8ld %6ld %7.2f %5.0f%% %6.1f%% %10.1f %9.1f %10.1f\n", static_cast<long>(gemm.layer.tokens),
              static_cast<long>(tiling.tiles), waves.waves, 100.0 * waves.tail_fraction, 100.0 * tiling.useful_fraction,
              timing.median_s * 1e6, 1e-9 * static_cast<double>(gemm.problem.flops()) / timing.median_s, gemm.plan.predicted_s * 1e6);
  std::fflush(stdout);
}

void print_json(const DeviceInfo& device, const PlannedGemm& gemm, const Timing& timing) {
  const auto& [layer, problem, plan] = gemm;
  const PlanWaves waves = waves_of(plan);
  JsonObject object;
  object.add("device", device.name).add(device.backend == Backend::cuda ? "sms" : "threads", device.sm_count).add("layer", layer.text());
  object.add("role", name_of(problem.role)).add("m", problem.m).add("n", problem.n).add("k", problem.k);
  object.add("dtype", name_of(problem.operand_dtype)).add("row", plan.row).add("tile", concat(plan.tile.m, "x", plan.tile.n));
  object.add("split", plan.split).add("tiles", plan.tiling.tiles).add("waves", waves.waves).add("tail_fraction", waves.tail_fraction);
  object.add("wave_fraction", waves.efficiency).add("useful_fraction", plan.tiling.useful_fraction);
  object.add("time_us", timing.median_s * 1e6).add("tflops", 1e-12 * static_cast<double>(problem.flops()) / timing.median_s);
  object.add("predicted_us", plan.predicted_s * 1e6).add("lower_quartile_us", timing.lower_quartile_s * 1e6);
  object.add("upper_quartile_us", timing.upper_quartile_s * 1e6);
  std::cout << object.text() << std::endl;
}

int bench_sweep(const SweepOptions& options) {
  const DeviceInfo device = options.device.probe();
  const std::vector<PlannedGemm> gemms = planned(options, device);
  GemmScratch scratch(options.device.make_queue(device));
  InterleaveOptions interleave{.rounds = options.rounds};
  if (!options.json) {
    std::printf("%s, %s\n", device.name.c_str(), name_of(gemms.back().plan).c_str());
    std::printf("%8s %6s %7s %6s %7s %10s %9s %10s\n", "tokens", "tiles", "waves", "tail", "useful", "time us", "GFLOP/s", "predicted");
  }
  for (const PlannedGemm& gemm : gemms) {
    const Candidate candidate = scratch.candidate(scratch.pose(gemm.problem), gemm.plan, name_of(gemm.plan));
    const Timing timing = compare({candidate}, {}, interleave).ours.front();
    interleave.load_s = 0.0;  // the process is warm now
    options.json ? print_json(device, gemm, timing) : print_row(gemm, timing);
  }
  return 0;
}

}  // namespace

Command add_bench_sweep(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("sweep", "one row and tile on more and more tokens: tile and wave quantization");
  const auto options = std::make_shared<SweepOptions>();
  command->add_option("--layer", options->layer, "out<-in, in f32 on a CPU and bf16 on a GPU")->capture_default_str();
  command->add_option("--tokens", options->tokens, "first:last:step")->capture_default_str();
  command->add_option("--choice", options->choice,
                      concat("<row>/<tile> (default: ", kCpuChoice, " on a CPU, on a GPU what is chosen for the most tokens)"));
  command->add_option("--rounds", options->rounds, "measured blocks of each number of tokens")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--json", options->json, "one JSON object a line, for app/text/plot.py");
  options->device.add_to(*command);
  return {command, [options] { return bench_sweep(*options); }};
}

}  // namespace tilewave

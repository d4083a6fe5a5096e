// tilewave bench sweep: one kernel and tile on more and more tokens, so that what the last tile and the last wave leave idle can be seen.
#include <algorithm>
#include <iostream>

#include "app/bench/bench.h"
#include "app/bench/bench_progress.h"
#include "app/bench/gemm_suite.h"
#include "app/text/table.h"
#include "app/text/units.h"
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
  PageOptions page;
  bool json = false;
  int rounds = 5;
};

struct PlannedGemm {
  Layer layer;
  GemmProblem problem;
  GemmPlan plan;
};

std::vector<PlannedGemm> planned(const SweepOptions& options, const DeviceInfo& device) {
  const GemmTypes types = parse_gemm_types(device.backend == Backend::cuda ? "bf16" : "f32");
  std::vector<PlannedGemm> gemms;
  for (const std::int64_t tokens : range_of({"--tokens", options.tokens})) {
    const std::string text = concat(options.layer, "@", tokens);
    const Layer layer = layer_of({"--layer", text});
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

struct Swept {
  const PlannedGemm* gemm = nullptr;
  Timing timing;

  double flops_per_s() const { return static_cast<double>(gemm->problem.flops()) / timing.median_s; }
};

// The fastest number of tokens first: what the others lose to it is tiles' padding and idle waves.
void print(const DeviceInfo& device, const std::vector<Swept>& all, const Page& page) {
  const auto by_rate = [](const Swept& a, const Swept& b) { return a.flops_per_s() < b.flops_per_s(); };
  const Swept &least = *std::ranges::min_element(all, by_rate), &most = *std::ranges::max_element(all, by_rate);
  std::cout << wrapped(concat(name_of(most.gemm->plan), " on ", device_text(device), ": fastest with ", count_text(most.gemm->layer.tokens),
                              " tokens, ", flops_text(most.flops_per_s()), "; slowest with ", count_text(least.gemm->layer.tokens), ", ",
                              flops_text(least.flops_per_s())),
                       page)
            << "\n\n";
  const RateUnit rates = rate_unit(most.flops_per_s());
  Table table({{.heading = "tokens"},
               {.heading = "tiles", .rank = 3},
               {.heading = "waves"},
               {.heading = "tail", .rank = 1},
               {.heading = "useful", .rank = 2},
               {.heading = "time"},
               {.heading = rates.unit},
               {.heading = "predicted time"}});
  for (const Swept& one : all) {
    const Tiling& tiling = one.gemm->plan.tiling;
    const PlanWaves waves = waves_of(one.gemm->plan);
    table.add({count_text(one.gemm->layer.tokens), count_text(tiling.tiles), number_text(waves.waves, "%.2f"),
               percent_text(waves.tail_fraction, 0), percent_text(tiling.useful_fraction), time_text(one.timing.median_s),
               number_text(rates.scale * one.flops_per_s(), "%.4g"), time_text(one.gemm->plan.predicted_s)});
  }
  table.print(std::cout, page);
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
  InterleaveOptions interleave{.load_s = load_s_of(device.backend), .rounds = options.rounds};
  std::vector<Swept> all;
  for (const PlannedGemm& gemm : gemms) {
    const Candidate candidate = scratch.candidate(scratch.pose(gemm.problem), gemm.plan, name_of(gemm.plan));
    all.push_back({.gemm = &gemm, .timing = compare({candidate}, {}, interleave).ours.front()});
    interleave.load_s = 0.0;  // the process is warm now
    if (options.json) {
      print_json(device, gemm, all.back().timing);
    } else {
      tell(gemm.layer.text(), all.back().timing);
    }
  }
  if (!options.json) print(device, all, options.page.of_stdout());
  return 0;
}

}  // namespace

Command add_bench_sweep(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("sweep", "one kernel and tile on more and more tokens: tile and wave quantization");
  const auto options = std::make_shared<SweepOptions>();
  command->add_option("--layer", options->layer, "out<-in, in f32 on a CPU and bf16 on a GPU")->capture_default_str();
  command->add_option("--tokens", options->tokens, "first:last:step")->capture_default_str();
  command->add_option("--choice", options->choice,
                      concat("<kernel>/<tile> (default: ", kCpuChoice, " on a CPU, on a GPU what is chosen for the most tokens)"));
  command->add_option("--rounds", options->rounds, "measured blocks of each number of tokens")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--json", options->json, "one JSON object a line, for app/text/plot.py");
  options->page.add_to(*command);
  options->device.add_to(*command);
  return {command, [options] { return bench_sweep(*options); }};
}

}  // namespace tilewave

// tilewave bench attention: forward and backward over packed sequences of one length, queries, keys and values side by side as a
// model has them, replayed from a captured graph as a step is. TFLOP/s count cost()'s products, the causal half of them where half
// is masked; what a pass computes again is not counted.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "app/bench/bench.h"
#include "app/bench/bench_operands.h"
#include "app/bench/bench_progress.h"
#include "app/text/table.h"
#include "app/text/units.h"
#include "framework/io/json_lines.h"
#include "framework/measure/interleave.h"
#include "framework/measure/operation_work.h"
#include "kernels/core/graph.h"
#include "models/planning/plan.h"

namespace tilewave {
namespace {

struct AttentionBenchOptions {
  DeviceOptions device;
  AttentionSequences shape;
  bool causal = false;
  std::string precision;
  int rounds = 9;
  PageOptions page;
  bool json = false;
};

constexpr std::size_t kMaxSets = 64;  // of operands
constexpr const char *kForward = "attention", *kBackward = "attention_backward";

struct Pass {
  const char* name = "";
  AttentionSequences shape;
  Timing timing;
  Cost cost;
  double floor_s = 0.0;

  double flops_per_s() const { return static_cast<double>(cost.flops) / timing.median_s; }
};

const char* mask_name(const Pass& pass) { return pass.shape.mask == Mask::causal ? "causal" : "none"; }

void print_json(const Pass& pass, const DeviceInfo& device, Precision precision) {
  const AttentionSequences& shape = pass.shape;
  std::cout << JsonObject()
                   .add("device", device.name)
                   .add("operation", pass.name)
                   .add("sequences", shape.sequences)
                   .add("heads", shape.heads)
                   .add("sequence", shape.length)
                   .add("head_size", shape.head_size)
                   .add("mask", mask_name(pass))
                   .add("dropout", shape.dropout)
                   .add("precision", name_of(precision))
                   .add("flops", pass.cost.flops)
                   .add("bytes", pass.cost.bytes)
                   .add("time_us", pass.timing.median_s * 1e6)
                   .add("lower_quartile_us", pass.timing.lower_quartile_s * 1e6)
                   .add("upper_quartile_us", pass.timing.upper_quartile_s * 1e6)
                   .add("floor_us", pass.floor_s > 0.0 ? pass.floor_s * 1e6 : NAN)
                   .add("tflops", 1e-12 * pass.flops_per_s())
                   .text()
            << std::endl;
}

// The range of rates of either pass, then all of them.
void print(const std::vector<Pass>& all, const std::string& where, const Page& page) {
  double fastest = 0.0;
  for (const char* name : {kForward, kBackward}) {
    double least = HUGE_VAL, most = 0.0;
    for (const Pass& pass : all) {
      if (pass.name != std::string_view(name)) continue;
      least = std::min(least, pass.flops_per_s());
      most = std::max(most, pass.flops_per_s());
    }
    fastest = std::max(fastest, most);
    const std::string range = least < most ? concat(flops_text(least), " to ", flops_text(most)) : flops_text(most);
    std::cout << wrapped(concat(name, where, ": ", range), page) << '\n';
  }
  std::cout << '\n';
  const RateUnit rates = rate_unit(fastest);
  Table table({{.heading = "sequences"},
               {.heading = "heads"},
               {.heading = "tokens of each"},
               {.heading = "head size"},
               {.heading = "mask", .align = Align::left, .rank = 1},
               {.heading = "operation", .align = Align::left},
               {.heading = "time"},
               {.heading = "roofline time", .rank = 2},
               {.heading = rates.unit}});
  for (const Pass& pass : all) {
    table.add({count_text(pass.shape.sequences), count_text(pass.shape.heads), count_text(pass.shape.length),
               count_text(pass.shape.head_size), mask_name(pass), pass.name, time_text(pass.timing.median_s), time_text(pass.floor_s),
               number_text(rates.scale * pass.flops_per_s(), "%.4g")});
  }
  table.print(std::cout, page);
}

Timing per_pass(Timing timing, std::size_t passes) {
  for (double* time : {&timing.median_s, &timing.lower_quartile_s, &timing.upper_quartile_s}) *time /= static_cast<double>(passes);
  return timing;
}

int bench_attention(const AttentionBenchOptions& options) {
  const DeviceInfo device = options.device.probe();
  const Precision precision = precision_of(options.precision, device.backend);
  InterleaveOptions interleave{.load_s = load_s_of(device.backend), .rounds = options.rounds};
  std::vector<Pass> all;
  const bool asked = options.shape.sequences > 0;
  const auto shapes = benched_attention();
  for (AttentionSequences shape : asked ? std::vector{options.shape} : std::vector(shapes.begin(), shapes.end())) {
    if (options.causal) shape.mask = Mask::causal;
    shape.dropout = options.shape.dropout;
    Context context(options.device.make_queue(device), device, {.precision = precision});
    context.write_step_state({.step = 1, .seed = 1});
    std::vector<AttentionPasses> sets;
    sets.push_back(attention_passes(context, shape));
    const std::int64_t bytes = sets.front().forward.entry.cost.bytes;
    while (static_cast<std::int64_t>(sets.size()) * bytes < kRotatedBytes && sets.size() < kMaxSets) {
      sets.push_back(attention_passes(context, shape));
    }
    const auto candidate = [&](const char* name, auto member) {
      auto graph = std::make_shared<Graph>(capture(context.queue(), [&, member] {
        for (const AttentionPasses& set : sets) (set.*member).launch();
      }));
      return Candidate{.name = name, .launch = [graph](std::size_t) { graph->replay(); }, .wait = [&] { synchronize(context.queue()); }};
    };
    const Comparison comparison =
        compare({candidate(kForward, &AttentionPasses::forward)}, {candidate(kBackward, &AttentionPasses::backward)}, interleave);
    interleave.load_s = 0.0;  // the device is warm now
    const PrecisionTable types = precision_table(precision);
    const auto add = [&](const char* name, const Timing& timing, const Cost& cost) {
      all.push_back({.name = name,
                     .shape = shape,
                     .timing = per_pass(timing, sets.size()),
                     .cost = cost,
                     .floor_s = floor_s(cost, device, types.activation, types.math)});
      if (options.json) {
        print_json(all.back(), device, precision);
      } else {
        tell(concat(name, " of ", shape.sequences, " sequences of ", shape.length), all.back().timing);
      }
    };
    add(kForward, comparison.ours.front(), sets.front().forward.entry.cost);
    add(kBackward, comparison.peers.front(), sets.front().backward.entry.cost);
  }
  if (!options.json) print(all, concat(" in ", name_of(precision), " on ", device_text(device)), options.page.of_stdout());
  return 0;
}

}  // namespace

Command add_bench_attention(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("attention", "attention forward and backward over packed sequences");
  const auto options = std::make_shared<AttentionBenchOptions>();
  const auto count = CLI::Range(1, 1 << 20);
  CLI::Option* sequences =
      command->add_option("--sequences", options->shape.sequences, "how many (default: a table of shapes)")->check(count);
  CLI::Option* heads = command->add_option("--heads", options->shape.heads, "heads")->check(count);
  CLI::Option* length = command->add_option("--sequence", options->shape.length, "tokens of each sequence")->check(count);
  CLI::Option* size = command->add_option("--head-size", options->shape.head_size, "columns of a head")->check(count);
  for (CLI::Option* option : {sequences, heads, length, size}) {
    for (CLI::Option* other : {sequences, heads, length, size}) {
      if (option != other) option->needs(other);
    }
  }
  command->add_flag("--causal", options->causal, "a token sees none that follow it")->needs(sequences);
  command->add_option("--dropout", options->shape.dropout, "of the probabilities")->check(CLI::Range(0.0, 0.99))->capture_default_str();
  command->add_option("--precision", options->precision, "types, as run.precision has them (default: bf16 on a GPU, else fp32)");
  command->add_option("--rounds", options->rounds, "rounds")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_flag("--json", options->json, "one JSON object a line");
  options->page.add_to(*command);
  options->device.add_to(*command);
  return {command, [options] { return bench_attention(*options); }};
}

}  // namespace tilewave

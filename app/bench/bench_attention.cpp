// tilewave bench attention: forward and backward over packed sequences of one length, queries, keys and values side by side as a
// model has them, replayed from a captured graph as a step is. TFLOP/s count cost()'s products, the causal half of them where half
// is masked; what a pass computes again is not counted.
#include <cmath>
#include <cstdio>
#include <iostream>

#include "app/bench/bench.h"
#include "app/bench/bench_operands.h"
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
  bool json = false;
};

constexpr std::size_t kMaxSets = 64;  // of operands

void print(const AttentionBenchOptions& options, const DeviceInfo& device, Precision precision, const AttentionSequences& shape,
           const char* pass, const Timing& timing, const Cost& cost) {
  const double tflops = static_cast<double>(cost.flops) / timing.median_s * 1e-12;
  const PrecisionTable table = precision_table(precision);
  const double floor = floor_s(cost, device, table.activation, table.math);
  if (options.json) {
    std::cout << JsonObject()
                     .add("device", device.name)
                     .add("operation", pass)
                     .add("sequences", shape.sequences)
                     .add("heads", shape.heads)
                     .add("sequence", shape.length)
                     .add("head_size", shape.head_size)
                     .add("mask", shape.mask == Mask::causal ? "causal" : "none")
                     .add("dropout", shape.dropout)
                     .add("precision", name_of(precision))
                     .add("flops", cost.flops)
                     .add("bytes", cost.bytes)
                     .add("time_us", timing.median_s * 1e6)
                     .add("lower_quartile_us", timing.lower_quartile_s * 1e6)
                     .add("upper_quartile_us", timing.upper_quartile_s * 1e6)
                     .add("floor_us", floor > 0.0 ? floor * 1e6 : NAN)
                     .add("tflops", tflops)
                     .text()
              << std::endl;
    return;
  }
  std::printf("%9lld %5lld %8lld %9lld %6s %-18s %10.1f %8s %8.1f\n", static_cast<long long>(shape.sequences),
              static_cast<long long>(shape.heads), static_cast<long long>(shape.length), static_cast<long long>(shape.head_size),
              shape.mask == Mask::causal ? "causal" : "none", pass, timing.median_s * 1e6, floor_text(floor).c_str(), tflops);
  std::fflush(stdout);
}

Timing per_pass(Timing timing, std::size_t passes) {
  for (double* time : {&timing.median_s, &timing.lower_quartile_s, &timing.upper_quartile_s}) *time /= static_cast<double>(passes);
  return timing;
}

int bench_attention(const AttentionBenchOptions& options) {
  const DeviceInfo device = options.device.probe();
  const Precision precision = precision_of(options.precision, device.backend);
  InterleaveOptions interleave{.rounds = options.rounds};
  if (!options.json) {
    std::printf("%s, %s\n%9s %5s %8s %9s %6s %-18s %10s %8s %8s\n", device.name.c_str(), std::string(name_of(precision)).c_str(),
                "sequences", "heads", "sequence", "head size", "mask", "operation", "time us", "floor us", "TFLOP/s");
  }
  const bool asked = options.shape.sequences > 0;
  const auto table = benched_attention();
  for (AttentionSequences shape : asked ? std::vector{options.shape} : std::vector(table.begin(), table.end())) {
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
    const Comparison comparison = compare({candidate("attention", &AttentionPasses::forward)},
                                          {candidate("attention_backward", &AttentionPasses::backward)}, interleave);
    interleave.load_s = 0.0;  // the device is warm now
    print(options, device, precision, shape, "attention", per_pass(comparison.ours.front(), sets.size()), sets.front().forward.entry.cost);
    print(options, device, precision, shape, "attention_backward", per_pass(comparison.peers.front(), sets.size()),
          sets.front().backward.entry.cost);
  }
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
  options->device.add_to(*command);
  return {command, [options] { return bench_attention(*options); }};
}

}  // namespace tilewave

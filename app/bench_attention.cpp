// tilewave bench attention: forward and backward over packed sequences of one length, queries, keys and values side by side as a
// model has them, replayed from a captured graph as a step is. TFLOP/s count cost()'s products, the causal half of them where half
// is masked; what a pass computes again is not counted.
#include <array>
#include <cstdio>
#include <iostream>

#include "app/bench.h"
#include "app/bench_operands.h"
#include "framework/data/packing.h"
#include "framework/host_tensor.h"
#include "framework/io/json_lines.h"
#include "framework/measure/interleave.h"
#include "kernels/attention.h"
#include "kernels/graph.h"

namespace tilewave {
namespace {

struct AttentionShape {
  std::int64_t sequences = 0, heads = 0, length = 0, head_size = 0;
  bool causal = false;
};

struct AttentionBenchOptions {
  DeviceOptions device;
  AttentionShape shape;
  double dropout = 0.0;
  std::string precision;
  int rounds = 9;
  bool json = false;
};

// Transformer-big's encoder and decoder, GPT-2's, and longer and wider ones.
constexpr std::array<AttentionShape, 7> kShapes = {{{80, 16, 64, 64, false},
                                                    {80, 16, 64, 64, true},
                                                    {64, 12, 1024, 64, true},
                                                    {16, 16, 4096, 64, true},
                                                    {16, 16, 1024, 128, true},
                                                    {4, 16, 4096, 128, true},
                                                    {4, 16, 4096, 128, false}}};

constexpr std::size_t kMostSets = 64;  // of operands

// One set of operands and both passes over it. The launch closures own the tensors.
struct Passes {
  AttentionArgs forward;
  AttentionBackwardArgs backward;
  std::vector<Tensor> owned;
};

Passes prepare(Context& context, const AttentionShape& shape, double dropout) {
  const PrecisionTable& types = context.precision();
  const std::int64_t rows = shape.sequences * shape.length, d = shape.heads * shape.head_size;
  const Tensor qkv = random_tensor(context, {rows, 3 * d}, types.activation, 1),
               dout = random_tensor(context, {rows, d}, types.activation, 2);
  const Tensor out = context.tensor({rows, d}, types.activation), dqkv = context.tensor({rows, 3 * d}, types.activation);
  const Tensor log_sum_exp = context.tensor({rows, shape.heads}, types.statistics),
               delta = context.tensor({rows, shape.heads}, types.statistics);
  const Tensor spans = context.tensor({1, attention_spans(rows, rows)}, DType::i32);
  const Tensor segments = context.tensor({rows, 4}, DType::i32);  // as many as a model's batch has room for
  const std::vector<std::int32_t> lengths(static_cast<std::size_t>(shape.sequences), static_cast<std::int32_t>(shape.length));
  write_ids(context, segments, attention_segments(lengths, lengths, rows));
  const auto part = [&](const Tensor& packed, std::int64_t index) { return packed.columns(index * d, d).view(); };
  Passes passes;
  passes.forward = {.q = part(qkv, 0),
                    .k = part(qkv, 1),
                    .v = part(qkv, 2),
                    .segments = segments.view(),
                    .heads = shape.heads,
                    .sequence = shape.length,
                    .mask = shape.causal ? Mask::causal : Mask::none,
                    .dropout = {.probability = dropout, .site = 1, .state = context.step_state()},
                    .out = out.view(),
                    .log_sum_exp = log_sum_exp.view(),
                    .spans = spans.view()};
  passes.backward = {.q = passes.forward.q,
                     .k = passes.forward.k,
                     .v = passes.forward.v,
                     .out = out.view(),
                     .log_sum_exp = log_sum_exp.view(),
                     .dout = dout.view(),
                     .segments = segments.view(),
                     .heads = shape.heads,
                     .sequence = shape.length,
                     .mask = passes.forward.mask,
                     .dropout = passes.forward.dropout,
                     .dq = part(dqkv, 0),
                     .dk = part(dqkv, 1),
                     .dv = part(dqkv, 2),
                     .spans = spans.view(),
                     .delta = delta.view()};
  passes.owned = {qkv, dout, out, dqkv, log_sum_exp, delta, spans, segments};
  context.launch(passes.forward);
  return passes;
}

void print(const AttentionBenchOptions& options, const std::string& device, Precision precision, const AttentionShape& shape,
           const char* pass, const Timing& timing, const Cost& cost) {
  const double tflops = static_cast<double>(cost.flops) / timing.median_s * 1e-12;
  if (options.json) {
    std::cout << JsonObject()
                     .add("device", device)
                     .add("operation", pass)
                     .add("sequences", shape.sequences)
                     .add("heads", shape.heads)
                     .add("sequence", shape.length)
                     .add("head_size", shape.head_size)
                     .add("mask", shape.causal ? "causal" : "none")
                     .add("dropout", options.dropout)
                     .add("precision", name_of(precision))
                     .add("flops", cost.flops)
                     .add("bytes", cost.bytes)
                     .add("time_us", timing.median_s * 1e6)
                     .add("lower_quartile_us", timing.lower_quartile_s * 1e6)
                     .add("upper_quartile_us", timing.upper_quartile_s * 1e6)
                     .add("tflops", tflops)
                     .text()
              << std::endl;
    return;
  }
  std::printf("%9lld %5lld %8lld %9lld %6s %-18s %10.1f %8.1f\n", static_cast<long long>(shape.sequences),
              static_cast<long long>(shape.heads), static_cast<long long>(shape.length), static_cast<long long>(shape.head_size),
              shape.causal ? "causal" : "none", pass, timing.median_s * 1e6, tflops);
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
    std::printf("%s, %s\n%9s %5s %8s %9s %6s %-18s %10s %8s\n", device.name.c_str(), std::string(name_of(precision)).c_str(), "sequences",
                "heads", "sequence", "head size", "mask", "operation", "time us", "TFLOP/s");
  }
  const bool asked = options.shape.sequences > 0;
  for (const AttentionShape& shape : asked ? std::vector{options.shape} : std::vector(kShapes.begin(), kShapes.end())) {
    Context context(options.device.make_queue(device), device, {.precision = precision});
    context.write_step_state({.step = 1, .seed = 1});
    std::vector<Passes> sets{prepare(context, shape, options.dropout)};
    const std::int64_t bytes = cost(sets.front().forward).bytes;
    while (static_cast<std::int64_t>(sets.size()) * bytes < kRotatedBytes && sets.size() < kMostSets) {
      sets.push_back(prepare(context, shape, options.dropout));
    }
    const auto candidate = [&](const char* name, auto member) {
      auto graph = std::make_shared<Graph>(capture(context.queue(), [&, member] {
        for (const Passes& set : sets) context.launch(set.*member);
      }));
      return Candidate{.name = name, .launch = [graph](std::size_t) { graph->replay(); }, .wait = [&] { synchronize(context.queue()); }};
    };
    const Comparison comparison =
        compare({candidate("attention", &Passes::forward)}, {candidate("attention_backward", &Passes::backward)}, interleave);
    interleave.load_s = 0.0;  // the device is warm now
    print(options, device.name, precision, shape, "attention", per_pass(comparison.ours.front(), sets.size()), cost(sets.front().forward));
    print(options, device.name, precision, shape, "attention_backward", per_pass(comparison.peers.front(), sets.size()),
          cost(sets.front().backward));
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
  command->add_flag("--causal", options->shape.causal, "a token sees none that follow it")->needs(sequences);
  command->add_option("--dropout", options->dropout, "of the probabilities")->check(CLI::Range(0.0, 0.99))->capture_default_str();
  command->add_option("--precision", options->precision, "types, as run.precision has them (default: bf16 on a GPU, else fp32)");
  command->add_option("--rounds", options->rounds, "rounds")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_flag("--json", options->json, "one JSON object a line");
  options->device.add_to(*command);
  return {command, [options] { return bench_attention(*options); }};
}

}  // namespace tilewave

// tilewave bench gemm: the catalog's GEMMs on a Transformer's layers, against a library in the same run.
// tilewave bench sweep: one row and tile on more and more tokens.
// tilewave bench step RECIPE: whole training steps. bench_op.cpp and bench_attention.cpp have the operations, bench_calibrate.cpp the
// time model of a GPU.
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>

#include "app/bench_attention.h"
#include "app/bench_calibrate.h"
#include "app/bench_gemm_cuda.h"
#include "app/bench_op.h"
#include "app/command.h"
#include "app/gemm_suite.h"
#include "app/openblas.h"
#include "framework/host_tensor.h"
#include "framework/io/json_lines.h"
#include "framework/measure/interleave.h"
#include "framework/ops/gemm_roles.h"
#include "framework/random.h"
#include "kernels/gemm/catalog.h"
#include "models/corpus_of.h"
#include "models/step_plans.h"
#include "models/train_step.h"

namespace tilewave {
namespace {

// The layers that a claim about the CPU's GEMM is made over.
const std::vector<std::string> kCpuSuite = {"512<-512@512",  "1024<-1024@1024", "2048<-2048@2048", "512<-128@1536", "128<-512@1536",
                                            "384<-128@1536", "8000<-128@1536",  "768<-768@4096",   "65<-127@33"};

constexpr std::int64_t kRotatedBytes = 64 << 20;  // operands take turns through more than this

struct GemmOptions {
  DeviceOptions device;
  std::vector<std::string> layers;
  std::string row;
  std::string against;
  std::vector<std::string> forms;
  std::string dtype;  // "" is bf16 on a GPU, f32 on a CPU
  std::string pitch = "packed";
  std::string suite;
  bool calibrate = false;
  double block_ms = 20.0;
  bool json = false;
  int rounds = 9;
};

int bench_gemm_on_gpu(const GemmOptions& options, const DeviceInfo& device) {
  SuiteCut cut = {.forms = {}, .layers = options.layers};
  for (const std::string& form : options.forms) cut.forms.push_back(parse_gemm_form(form));
  const bool transformer = options.suite == "transformer";
  const CudaGemmBench bench = {.suite = transformer
                                            ? transformer_suite(cut)
                                            : layers_suite(cut, options.pitch == "packed" ? PitchPolicy::packed : PitchPolicy::aligned),
                               .row = options.row,
                               .against = options.against,
                               .dtype = options.dtype.empty() ? "bf16" : options.dtype,
                               .rounds = options.rounds,
                               .block_s = options.block_ms * 1e-3,
                               .calibrate = options.calibrate,
                               .json = options.json};
  TW_CHECK_INPUT(!bench.suite.items.empty(), "the suite has none of the forms on the layers asked for; leave --form or --layer out.");
  return bench_gemm_cuda(options.device.make_queue(device), device, bench);
}

// The operands of one role of a layer, once: D = A B.
struct Operands {
  Tensor a, b, d;
};

struct RoleCase {
  Layer layer;
  GemmRole role;
  std::vector<Operands> sets;

  GemmArgs args(std::size_t turn) const {
    const Operands& set = sets[turn % sets.size()];
    switch (role) {
      case GemmRole::forward:
        return forward_gemm(set.a, set.b, set.d);
      case GemmRole::dgrad:
        return dgrad_gemm(set.a, set.b, set.d);
      case GemmRole::wgrad:
        return wgrad_gemm(set.a, set.b, {.gradient = set.d});
    }
    throw Error("a GEMM has one of three roles.");
  }
};

Tensor random_matrix(Context& context, Shape shape, DType dtype, std::uint64_t key) {
  const Tensor tensor = context.tensor(shape, dtype);
  Random random(key);
  write_elements(context, tensor, [&](std::int64_t, std::int64_t) {
    double sum = 0.0;  // of four uniform draws: close to normal, variance 1
    for (int i = 0; i < 4; ++i) sum += static_cast<double>(random.next() >> 11) * 0x1p-53 - 0.5;
    return sum * std::sqrt(3.0);
  });
  return tensor;
}

RoleCase make_case(Context& context, const Layer& layer, GemmRole role, DType dtype) {
  const Shape weight{layer.out, layer.in}, x{layer.tokens, layer.in}, y{layer.tokens, layer.out};
  const Shape a = role == GemmRole::wgrad ? x : weight;
  const Shape b = role == GemmRole::forward ? x : y;
  const Shape d = role == GemmRole::forward ? y : role == GemmRole::dgrad ? x : weight;
  const std::int64_t bytes = (a.elements() + b.elements() + d.elements()) * size_of(dtype);
  const std::int64_t count = std::clamp<std::int64_t>(kRotatedBytes / bytes + 1, 2, 64);
  RoleCase result{.layer = layer, .role = role, .sets = {}};
  for (std::int64_t set = 0; set < count; ++set) {
    result.sets.push_back({.a = random_matrix(context, a, dtype, random_key(1, set)),
                           .b = random_matrix(context, b, dtype, random_key(2, set)),
                           .d = context.tensor(d, dtype)});
  }
  return result;
}

std::vector<GemmPlan> plans_for(const GemmProblem& problem, const DeviceInfo& device, const std::string& wanted) {
  std::vector<GemmPlan> plans;
  for (const GemmRow* row : gemm_catalog()) {
    const bool chosen = wanted.empty() ? row->name != "naive" : row->name == wanted;  // the oracle is slow by design
    if (!chosen || row->launch_cpu == nullptr || !row->refuse(problem, device).empty()) continue;
    for (const Tile& tile : row->tiles) plans.push_back(row->plan(problem, tile, device, 0));
  }
  TW_CHECK_INPUT(!plans.empty(), wanted.empty() ? "no row of the catalog" : "the row " + wanted, " runs this problem on a CPU.");
  return plans;
}

std::string name_of_plan(const GemmPlan& plan) { return sentence(plan.row, "/", plan.tile.m, "x", plan.tile.n); }

void launch_sgemm(const OpenBlas& blas, const RoleCase& role_case, std::size_t turn) {
  using enum OpenBlas::Transpose;
  const Operands& set = role_case.sets[turn % role_case.sets.size()];
  const auto& [out, in, tokens] = role_case.layer;
  const auto* const a = static_cast<const float*>(set.a.data());
  const auto* const b = static_cast<const float*>(set.b.data());
  auto* const d = static_cast<float*>(set.d.data());
  switch (role_case.role) {
    case GemmRole::forward:
      return blas.sgemm(no, yes, tokens, out, in, b, set.b.pitch(), a, set.a.pitch(), 0.0F, d, set.d.pitch());
    case GemmRole::dgrad:
      return blas.sgemm(no, no, tokens, in, out, b, set.b.pitch(), a, set.a.pitch(), 0.0F, d, set.d.pitch());
    case GemmRole::wgrad:
      return blas.sgemm(yes, no, out, in, tokens, b, set.b.pitch(), a, set.a.pitch(), 0.0F, d, set.d.pitch());
  }
}

DType cpu_dtype(const GemmOptions& options) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    if (options.dtype == name_of(dtype)) return dtype;
  }
  TW_CHECK_INPUT(options.dtype.empty(), "--dtype ", options.dtype, ": on a CPU f32, f64 and bf16 are measured.");
  return DType::f32;
}

int bench_gemm(const GemmOptions& options) {
  const DeviceInfo device = options.device.probe();
  if (device.backend == Backend::cuda) return bench_gemm_on_gpu(options, device);
  TW_CHECK_INPUT(options.suite.empty() && options.forms.empty() && !options.calibrate, "--suite, --form and --calibrate are for GPUs, and ",
                 device.name, " is none; add --device cuda, or leave them out.");
  Context context(options.device.make_queue(device), device);
  TW_CHECK_INPUT(options.against.empty() || options.against == "openblas", "--against ", options.against, ": the CPU's peer is openblas.");
  const DType dtype = cpu_dtype(options);
  TW_CHECK_INPUT(options.against.empty() || dtype == DType::f32, "--against openblas: it is compared in f32, not in ", name_of(dtype), ".");
  std::optional<OpenBlas> blas;
  if (!options.against.empty()) {
    blas.emplace(static_cast<int>(device.sm_count));
    std::cerr << "OpenBLAS " << blas->core() << ", " << device.sm_count << " threads\n";
  }
  InterleaveOptions interleave{.rounds = options.rounds};
  double logarithms = 0.0, worst = HUGE_VAL;
  int ratios = 0;
  if (!options.json)
    std::printf("%-18s %-8s %-24s %10s %9s %10s %11s %6s\n", "layer", "role", "row/tile", "time us", "GFLOP/s", "predicted", "peer GFLOP/s",
                "ratio");
  for (const std::string& text : options.layers.empty() ? kCpuSuite : options.layers) {
    for (const GemmRole role : {GemmRole::forward, GemmRole::dgrad, GemmRole::wgrad}) {
      const RoleCase role_case = make_case(context, parse_layer(text), role, dtype);
      const GemmProblem problem = problem_of(role_case.args(0));
      const std::vector<GemmPlan> plans = plans_for(problem, device, options.row);
      const GemmPlan model_choice = choose(problem, device);
      std::vector<Candidate> ours, peers;
      for (const GemmPlan& plan : plans) {
        const std::shared_ptr<void> workspace = context.workspace(plan.workspace_bytes);
        ours.push_back({.name = name_of_plan(plan),
                        .launch =
                            [&, workspace](std::size_t turn) {
                              GemmArgs args = role_case.args(turn);
                              args.plan = &plan;
                              args.workspace = workspace.get();
                              context.launch(args);
                            },
                        .always_final = plan == model_choice});
      }
      if (blas) peers.push_back({.name = "openblas", .launch = [&](std::size_t turn) { launch_sgemm(*blas, role_case, turn); }});
      const Comparison comparison = compare(ours, peers, interleave);
      interleave.load_s = 0.0;  // the process is warm now

      const Timing& best = comparison.ours.front();
      const GemmPlan& plan =
          *std::find_if(plans.begin(), plans.end(), [&](const GemmPlan& candidate) { return name_of_plan(candidate) == best.name; });
      const auto flops = static_cast<double>(problem.flops());
      const double ratio = blas ? comparison.peers.front().median_s / best.median_s : 0.0;
      if (blas) {
        logarithms += std::log(ratio);
        worst = std::min(worst, ratio);
        ++ratios;
      }
      if (options.json) {
        JsonObject object;
        object.add("device", device.name)
            .add("layer", text)
            .add("role", name_of(role))
            .add("m", problem.m)
            .add("n", problem.n)
            .add("k", problem.k);
        object.add("dtype", name_of(problem.operand_dtype)).add("row", plan.row).add("tile", sentence(plan.tile.m, "x", plan.tile.n));
        object.add("time_us", best.median_s * 1e6).add("tflops", flops / best.median_s * 1e-12).add("predicted_us", plan.predicted_s * 1e6);
        object.add("lower_quartile_us", best.lower_quartile_s * 1e6).add("upper_quartile_us", best.upper_quartile_s * 1e6);
        if (blas) {
          const Timing& peer = comparison.peers.front();
          object.add("peer", peer.name).add("peer_tflops", flops / peer.median_s * 1e-12).add("ratio", ratio);
          object.add("peer_lower_quartile_us", peer.lower_quartile_s * 1e6).add("peer_upper_quartile_us", peer.upper_quartile_s * 1e6);
        }
        std::cout << object.text() << std::endl;
      } else {
        std::printf("%-18s %-8s %-24s %10.1f %9.1f %10.1f", text.c_str(), std::string(name_of(role)).c_str(), best.name.c_str(),
                    best.median_s * 1e6, flops / best.median_s * 1e-9, plan.predicted_s * 1e6);
        if (blas) std::printf(" %11.1f %6.2f", flops / comparison.peers.front().median_s * 1e-9, ratio);
        std::printf("\n");
        std::fflush(stdout);
      }
    }
  }
  if (ratios > 0 && !options.json) std::printf("geometric mean of the ratios %.3f, least %.3f\n", std::exp(logarithms / ratios), worst);
  return 0;
}

struct SweepOptions {
  DeviceOptions device;
  std::string layer = "256<-512";
  std::string tokens = "96:3072:96";
  std::string choice = "packed_tiles/256x384";
  bool json = false;
  int rounds = 5;
};

// "first:last:step"
std::vector<std::int64_t> parse_range(const std::string& text) {
  std::int64_t first = 0, last = 0, step = 0;
  char rest = 0;
  const bool whole = std::sscanf(text.c_str(), "%" SCNd64 ":%" SCNd64 ":%" SCNd64 "%c", &first, &last, &step, &rest) == 3;
  TW_CHECK_INPUT(whole && first > 0 && step > 0 && last >= first && last < (std::int64_t{1} << 31) && (last - first) / step < 10000,
                 "--tokens ", text, ": a range is written first:last:step, for example 96:3072:96.");
  std::vector<std::int64_t> values;
  for (std::int64_t value = first; value <= last; value += step) values.push_back(value);
  return values;
}

// One tile on more and more tokens: what the last wave leaves idle.
int bench_sweep(const SweepOptions& options) {
  const DeviceInfo device = options.device.probe();
  Context context(options.device.make_queue(device), device);
  InterleaveOptions interleave{.rounds = options.rounds};
  if (!options.json)
    std::printf("%8s %6s %7s %6s %7s %10s %9s %10s\n", "tokens", "tiles", "waves", "tail", "useful", "time us", "GFLOP/s", "predicted");
  for (const std::int64_t tokens : parse_range(options.tokens)) {
    const Layer layer = parse_layer(sentence(options.layer, "@", tokens));
    const RoleCase role_case = make_case(context, layer, GemmRole::forward, DType::f32);
    const GemmProblem problem = problem_of(role_case.args(0));
    const GemmPlan plan = choose(problem, device, {.forced = options.choice});
    const std::shared_ptr<void> workspace = context.workspace(plan.workspace_bytes);
    const Candidate candidate{.name = name_of_plan(plan), .launch = [&](std::size_t turn) {
                                GemmArgs args = role_case.args(turn);
                                args.plan = &plan;
                                args.workspace = workspace.get();
                                context.launch(args);
                              }};
    const Timing timing = compare({candidate}, {}, interleave).ours.front();
    interleave.load_s = 0.0;  // the process is warm now
    const double tflops = static_cast<double>(problem.flops()) / timing.median_s * 1e-12;
    if (options.json) {
      JsonObject object;
      object.add("device", device.name).add("threads", device.sm_count).add("layer", layer.text()).add("role", name_of(problem.role));
      object.add("m", problem.m).add("n", problem.n).add("k", problem.k).add("dtype", name_of(problem.operand_dtype));
      object.add("row", plan.row).add("tile", sentence(plan.tile.m, "x", plan.tile.n)).add("tiles", plan.tiling.tiles);
      object.add("waves", plan.tiling.waves).add("tail_fraction", plan.tiling.tail_utilization);
      object.add("wave_fraction", plan.tiling.wave_efficiency).add("useful_fraction", plan.tiling.useful_fraction);
      object.add("time_us", timing.median_s * 1e6).add("tflops", tflops).add("predicted_us", plan.predicted_s * 1e6);
      object.add("lower_quartile_us", timing.lower_quartile_s * 1e6).add("upper_quartile_us", timing.upper_quartile_s * 1e6);
      std::cout << object.text() << std::endl;
    } else {
      std::printf("%8ld %6ld %7.2f %5.0f%% %6.1f%% %10.1f %9.1f %10.1f\n", static_cast<long>(tokens), static_cast<long>(plan.tiling.tiles),
                  plan.tiling.waves, 100.0 * plan.tiling.tail_utilization, 100.0 * plan.tiling.useful_fraction, timing.median_s * 1e6,
                  1e3 * tflops, plan.predicted_s * 1e6);
      std::fflush(stdout);
    }
  }
  return 0;
}

struct StepOptions {
  RecipeOptions recipe;
  DeviceOptions device;
  bool json = false;
  int rounds = 25;
};

int bench_step(const StepOptions& options) {
  const Recipe recipe = options.recipe.read();
  const DeviceInfo device = options.device.probe();
  check_supported(recipe, device.backend);
  check_files(recipe);
  const Corpus corpus = corpus_of(recipe);
  const ResolvedRecipe resolved = resolve(recipe, {.vocabulary = corpus.tokenizer() ? corpus.tokenizer()->vocabulary() : 0}, device);
  const Queue queue = options.device.make_queue(device);
  const GemmPlans plans =
      plans_for_step(resolved, {.queue = queue, .device = device, .noted = [](const std::string& note) { std::cerr << note << '\n'; }});
  const StepTrace trace = trace_step(resolved, device, plans);
  Context context(queue, device, context_options(resolved.recipe, plans));
  TrainStep step(context, resolved);
  step.use_step_memory(trace.memory);
  BatchStream stream = corpus.training(batch_shape(resolved));
  std::int64_t done = 0, tokens = 0;
  const Candidate candidate{.name = recipe.name, .launch = [&](std::size_t) {
                              std::vector<Batch> batches;
                              for (std::int64_t i = 0; i < resolved.recipe.batch.accumulate; ++i) batches.push_back(*stream.next());
                              tokens += step.run(batches, ++done).target_tokens;
                            }};
  const Timing timing = compare({candidate}, {}, {.rounds = options.rounds}).ours.front();
  std::int64_t flops = 0;
  for (const TraceEntry& entry : trace.trace.entries) {
    if (entry.gemm) flops += entry.cost.flops;
  }
  const double tokens_per_s = static_cast<double>(tokens) / static_cast<double>(done) / timing.median_s;
  if (options.json) {
    std::cout << JsonObject()
                     .add("device", device.name)
                     .add("recipe", recipe.name)
                     .add("time_us", timing.median_s * 1e6)
                     .add("lower_quartile_us", timing.lower_quartile_s * 1e6)
                     .add("upper_quartile_us", timing.upper_quartile_s * 1e6)
                     .add("target_tokens_per_s", tokens_per_s)
                     .add("gemm_flops", flops)
                     .add("gemm_tflops", static_cast<double>(flops) / timing.median_s * 1e-12)
                     .text()
              << '\n';
  } else {
    std::printf("%s on %s, %ld threads: %.2f ms a step (quartiles %.2f to %.2f), %.0f target tokens/s, %.1f GFLOP/s in GEMMs\n",
                recipe.name.c_str(), device.name.c_str(), static_cast<long>(device.sm_count), timing.median_s * 1e3,
                timing.lower_quartile_s * 1e3, timing.upper_quartile_s * 1e3, tokens_per_s,
                static_cast<double>(flops) / timing.median_s * 1e-9);
  }
  return 0;
}

}  // namespace

Command add_bench(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("bench", "measure GEMMs, other operations or whole steps; a ratio is ours / peer in speed, from one run");
  command->require_subcommand(1);

  CLI::App* gemm = command->add_subcommand("gemm", "every row and tile on fully-connected layers, in all three roles");
  const auto gemm_options = std::make_shared<GemmOptions>();
  gemm->add_option("--layer", gemm_options->layers, "out<-in@tokens; may be repeated (default: a suite for the device)")->take_all();
  gemm->add_option("--row", gemm_options->row, "measure this row of the catalog alone");
  gemm->add_option("--against", gemm_options->against, "a peer measured in the same run: openblas, or on a GPU cublas or cublaslt");
  gemm->add_option("--form", gemm_options->forms, "GPU: what is asked of a layer; may be repeated (default: the four plain ones)")
      ->check(CLI::IsMember(gemm_forms()))
      ->take_all();
  gemm->add_option("--suite", gemm_options->suite, "GPU: transformer, with its claims and their targets; --layer and --form cut it")
      ->check(CLI::IsMember({"transformer"}));
  gemm->add_flag("--calibrate", gemm_options->calibrate, "GPU: predict by a time model that this run measures first, on other shapes");
  gemm->add_option("--dtype", gemm_options->dtype, "GPU: bf16 (default), f16, tf32, f32 or f64; CPU: f32 (default), f64 or bf16");
  gemm->add_option("--pitch", gemm_options->pitch, "GPU: how rows follow one another")->check(CLI::IsMember({"packed", "aligned"}));
  gemm->add_option("--block-ms", gemm_options->block_ms, "GPU: of one measured block")->check(CLI::Range(1.0, 1000.0));
  gemm->add_option("--rounds", gemm_options->rounds, "interleaved rounds")->check(CLI::Range(1, 1000));
  gemm->add_flag("--json", gemm_options->json, "one JSON object a line");
  gemm_options->device.add_to(*gemm);

  CLI::App* sweep = command->add_subcommand("sweep", "one row and tile on more and more tokens: tile and wave quantization");
  const auto sweep_options = std::make_shared<SweepOptions>();
  sweep->add_option("--layer", sweep_options->layer, "out<-in")->capture_default_str();
  sweep->add_option("--tokens", sweep_options->tokens, "first:last:step")->capture_default_str();
  sweep->add_option("--choice", sweep_options->choice, "<row>/<tile>")->capture_default_str();
  sweep->add_option("--rounds", sweep_options->rounds, "measured blocks of each number of tokens")->check(CLI::Range(1, 1000));
  sweep->add_flag("--json", sweep_options->json, "one JSON object a line, for app/plot.py");
  sweep_options->device.add_to(*sweep);

  CLI::App* step = command->add_subcommand("step", "training steps of a recipe");
  const auto step_options = std::make_shared<StepOptions>();
  step_options->recipe.add_to(*step);
  step->add_option("--rounds", step_options->rounds, "measured blocks of steps")->check(CLI::Range(1, 1000));
  step->add_flag("--json", step_options->json, "one JSON object");
  step_options->device.add_to(*step);

  const Command op = add_bench_op(*command);
  const Command attention = add_bench_attention(*command);
  const Command calibrate = add_bench_calibrate(*command);
  return {command, [=] {
            for (const Command& other : {op, attention, calibrate}) {
              if (other.app->parsed()) return other.action();
            }
            if (sweep->parsed()) return bench_sweep(*sweep_options);
            return gemm->parsed() ? bench_gemm(*gemm_options) : bench_step(*step_options);
          }};
}

}  // namespace tilewave

// tilewave plan: what a step, a layer or a GEMM will cost on a device, here or not, and which numbers would be better.
#include <cmath>
#include <iostream>
#include <optional>
#include <tuple>

#include "app/bench/bench_operands.h"
#include "app/options/command.h"
#include "app/options/literals.h"
#include "app/text/answer_text.h"
#include "app/text/chart.h"
#include "app/text/plan_text.h"
#include "app/text/units.h"
#include "framework/io/file.h"
#include "kernels/core/device_profiles.h"
#include "kernels/gemm/guide_tiles.h"
#include "models/planning/resolve.h"

namespace tilewave {
namespace {

struct PlanArguments {
  RecipeOptions recipe;
  DeviceOptions device;
  std::string profile;
  std::string gemm, layer, convolution, tile, precision, policy = "any";
  std::vector<std::string> operation;  // its name, and its shape where that is said
  std::int64_t steps = 0, tokens = 0;  // of a run; 0: not given
  double price = 0.0;                  // of a GPU for an hour; 0: not given
  RankOptions ranks;
  std::int64_t nodes = 1;        // machines that the ranks lie on
  double interconnect_gb = 0.0;  // per second and GPU, to other machines; 0: not given
  std::vector<std::string> switches;
  std::string pitch = "packed";
  std::int64_t sms = 0, blocks_per_sm = 0;  // 0: not given
  PageOptions page;
  std::filesystem::path draw;
  bool beta = false, json = false;

  bool exercise() const { return !gemm.empty() || !layer.empty() || !convolution.empty() || !operation.empty(); }
};

// The device to plan for: --for, else the one of --device; exercises without a GPU are the guide's, on its V100. With the SMs of --sm.
PlannedDevice device_of(const PlanArguments& options) {
  const bool exercise = options.exercise() && (options.sms > 0 || !options.tile.empty());
  DeviceInfo device = options.profile.empty() ? options.device.probe() : profile_named(options.profile);
  if (options.profile.empty() && exercise && device.backend == Backend::cpu && options.device.device == "auto") {
    device = device_profile("v100").device;
  }
  const std::int64_t own_sms = device.sm_count;
  if (options.sms > 0) {
    device.sm_count = options.sms;
    if (device.backend == Backend::cuda) device.index = kNoDevice;
  }
  // A ring is as fast as its slowest link.
  if (options.nodes > 1) device.link_bytes_per_s = std::min(device.link_bytes_per_s, 1e9 * options.interconnect_gb);
  return {.info = std::move(device), .own_sms = own_sms};
}

// What --switch asks for, else the recipe's own switches; none where neither has any.
std::vector<PredictedSetting> predicted_settings(const PlanArguments& options, const Recipe& recipe, const DeviceInfo& device,
                                                 RealTokenCounter& tokens) {
  std::string switches;
  for (const std::string& one : options.switches) switches.append(switches.empty() ? "" : " ").append(one);
  if (options.switches.empty()) switches = recipe.ablation.switches;
  return switches.empty() ? std::vector<PredictedSetting>()
                          : predict_settings(recipe, settings_of(parse_switches(switches), recipe.model), device, tokens);
}

// Settings that are mistakes of the input say so beside the table too, and make the command fail; the others are planned.
int exit_code_of(const std::vector<PredictedSetting>& settings) {
  int code = 0;
  for (const PredictedSetting& one : settings) {
    if (!one.refused_input) continue;
    std::cerr << "tilewave: " << one.setting.name << ": " << one.refused << '\n';
    code = 2;
  }
  return code;
}

// What --steps or --tokens ask for.
std::optional<RunCost> cost_of_run(const PlanArguments& options, const PlannedRecipe& planned, RealTokenCounter& tokens) {
  if (options.steps == 0 && options.tokens == 0) return std::nullopt;
  const double per_step = tokens(planned.resolved).target;
  const bool whole = planned.step.other_s > 0.0;  // else GEMMs alone have times
  RunCost cost{
      .steps = options.steps > 0 ? options.steps : static_cast<std::int64_t>(std::ceil(static_cast<double>(options.tokens) / per_step)),
      .price_per_hour = options.price > 0.0 ? std::optional(options.price * static_cast<double>(planned.step.ranks)) : std::nullopt,
      .error = step_error(planned.device, planned.step)};
  cost.tokens = static_cast<double>(cost.steps) * per_step;
  cost.seconds = whole ? static_cast<double>(cost.steps) * planned.step.predicted_s() : NAN;
  return cost;
}

int plan_recipe(const PlanArguments& options) {
  const Recipe asked = options.recipe.read(), recipe = predictable(asked);
  TW_CHECK_INPUT(recipe.run.ranks % options.nodes == 0, "--nodes ", options.nodes, " cannot have as many of ", recipe.run.ranks,
                 recipe.run.ranks == 1 ? " rank" : " ranks", " each; name a divisor, or another --ranks.");
  if (recipe != asked) std::cerr << "planned with tilewave's own GEMMs: a library's times and measured ones are not predicted\n";
  const PlannedDevice device = device_of(options);
  check_plannable(recipe, device.info);
  RealTokenCounter tokens(recipe);
  const ResolvedRecipe resolved = resolve(recipe, {}, device.info, tokens);
  const StepTrace trace = trace_step(resolved, device.info);
  const StepPlan step = plan_step(resolved, trace, device.info);
  const std::vector<Advice> advice = advise(of_one_rank(resolved), device.info, tokens, recipe.guidelines.wave_free_batch);
  const std::vector<PredictedSetting> settings = predicted_settings(options, asked, device.info, tokens);
  const PlannedRecipe planned = {
      .resolved = resolved, .trace = trace, .step = step, .advice = advice, .settings = settings, .device = device.info};
  const std::optional<RunCost> run = cost_of_run(options, planned, tokens);
  if (options.json) {
    write_json(std::cout, planned);
    if (run) print_run_json(std::cout, *run);
  } else {
    const std::string costs = run ? text_of(*run) : std::string();
    print_plan(std::cout, {.planned = planned, .device = device, .tokens = tokens, .run = costs}, options.page.of_stdout());
  }
  return exit_code_of(settings);
}

AlignmentPolicy policy_of(const PlanArguments& options) {
  return options.policy == "strict" ? AlignmentPolicy::strict : AlignmentPolicy::any;
}

// A plan in the tile that --tile names, M by N as problem.h has them.
GemmPlan plan_in_tile(const PlanArguments& options, const GemmProblem& problem, Tile tile, const DeviceInfo& device) {
  TW_CHECK_INPUT(device.backend == Backend::cuda, "--tile ", options.tile, " counts on a GPU's SMs, and ", device.name,
                 " is none; name a GPU with --for.");
  const BlocksPerSm blocks =
      options.blocks_per_sm > 0 ? BlocksPerSm{options.blocks_per_sm, "as --blocks-per-sm says"} : assumed_blocks_per_sm(tile);
  GemmPlan plan = plan_guide_tile(problem, tile, device, blocks.blocks);
  plan.reason = concat("in ", tile.m, "x", tile.n, " with ", blocks.blocks, blocks.blocks == 1 ? " CTA" : " CTAs",
                       " of it per SM at a time, ", blocks.source);
  return plan;
}

// How the options have a GEMM planned.
std::function<GemmPlan(const GemmProblem&)> planner_of(const PlanArguments& options, const DeviceInfo& device) {
  if (options.tile.empty()) {
    return [&](const GemmProblem& problem) { return choose(problem, device, {.forced = {}, .alignment_policy = policy_of(options)}); };
  }
  const Tile tile = tile_of({"--tile", options.tile});
  return [&, tile](const GemmProblem& problem) { return plan_in_tile(options, problem, tile, device); };
}

// Its tiles by the waves that they run in.
void draw_tiles(const std::filesystem::path& path, const GemmLine& line, const DeviceInfo& device) {
  const auto& [m, n, k] = std::tie(line.problem.m, line.problem.n, line.problem.k);
  const Tile tile = line.plan.tile;
  write_file_atomically(path, svg_of(TileDiagram{.name = {},
                                                 .title = concat(m, " x ", n, " x ", k, " on ", device_text(device)),
                                                 .m = m,
                                                 .n = n,
                                                 .k = k,
                                                 .tile = tile,
                                                 .slots = line.plan.tiling.slots}));
}

Precision precision_for(const PlanArguments& options, const DeviceInfo& device) {
  const Precision precision = !options.precision.empty()        ? precision_of(options.precision, device.backend)
                              : device.backend == Backend::cuda ? Precision::fp16
                                                                : Precision::fp32;
  const std::optional<Precision> instead = precision_instead(precision, device);
  TW_CHECK_INPUT(!instead, device.name, " has no units for --precision ", name_of(precision), "; use --precision ", name_of(*instead), ".");
  return precision;
}

PitchPolicy pitch_of(const PlanArguments& options) { return options.pitch == "aligned" ? PitchPolicy::aligned : PitchPolicy::packed; }

int plan_gemms(const PlanArguments& options) {
  if (!options.draw.empty()) check_output_file("--draw", options.draw);
  const PlannedDevice planned_for = device_of(options);
  const DeviceInfo& device = planned_for.info;
  const GemmQuestion asked = {.precision = precision_for(options, device),
                              .pitch = pitch_of(options),
                              .reads_c = options.beta,
                              .plan = planner_of(options, device)};
  std::vector<GemmQuestion> questions;
  std::vector<GemmLine> lines;
  const auto ask = [&](const std::string& name, AskedAs as, const Layer& layer) {
    GemmQuestion& question = questions.emplace_back(asked);
    question.as = as;
    question.layer = {.out = layer.out, .in = layer.in, .tokens = layer.tokens};
    for (const GemmRole role : question.roles()) {
      const GemmProblem problem = question.problem(role);
      lines.push_back({.layer = name, .problem = problem, .plan = question.plan(problem)});
    }
  };
  if (!options.gemm.empty()) ask(options.gemm, AskedAs::gemm, gemm_of({"--gemm", options.gemm}));
  if (!options.layer.empty()) ask(options.layer, AskedAs::layer, layer_of({"--layer", options.layer}));
  if (!options.draw.empty()) draw_tiles(options.draw, lines.front(), device);
  if (!options.json) {
    print_exercise(std::cout, {.lines = lines, .questions = questions, .device = planned_for, .precision = asked.precision},
                   options.page.of_stdout());
    return 0;
  }
  double seconds = 0.0;
  for (const GemmLine& line : lines) seconds += line.predicted_s();
  for (const GemmLine& line : lines) write_json(std::cout, {.line = line, .device = device, .step_s = seconds});
  for (const GemmQuestion& question : questions) print_answer_json(std::cout, question, device);
  return 0;
}

int plan_operation(const PlanArguments& options) {
  const PlannedDevice planned_for = device_of(options);
  const DeviceInfo& device = planned_for.info;
  OperationQuestion question{.name = options.operation.front(), .precision = precision_for(options, device)};
  if (options.operation.size() > 1) {
    const Matrix matrix = matrix_of({concat("--op ", question.name), options.operation.back()});
    question.shape = {matrix.rows, matrix.cols};
  }
  const OperationAnswer operation = answer(question, device);
  options.json ? print_operation_json(std::cout, operation, device)
               : print_operation_answer(std::cout, operation, planned_for, options.page.of_stdout());
  return 0;
}

// The plans for an implicit GEMM. A tile of --tile is the guide's, whose M is the pixels; problem.h's is the outputs but for wgrad.
std::function<std::vector<GemmPlan>(const GemmProblem&)> convolution_planner_of(const PlanArguments& options, const DeviceInfo& device) {
  if (options.tile.empty()) {
    return [&](const GemmProblem& problem) {
      return gemm_candidates(problem, device, {.forced = {}, .alignment_policy = policy_of(options)});
    };
  }
  const Tile tile = tile_of({"--tile", options.tile}), turned = {.m = tile.n, .n = tile.m};
  return [&, tile, turned](const GemmProblem& problem) {
    return std::vector{plan_in_tile(options, problem, problem.role == GemmRole::wgrad ? tile : turned, device)};
  };
}

int plan_convolution(const PlanArguments& options) {
  const PlannedDevice planned_for = device_of(options);
  const DeviceInfo& device = planned_for.info;
  const ConvolutionLayer layer = convolution_of({"--convolution", options.convolution});
  const ConvolutionQuestion question = {.images = layer.images,
                                        .filter = layer.filter,
                                        .outputs = layer.outputs,
                                        .precision = precision_for(options, device),
                                        .pitch = pitch_of(options),
                                        .alignment_policy = policy_of(options),
                                        .plans = convolution_planner_of(options, device)};
  const std::vector<ConvolutionPhase> phases = answer(question, device);
  const ConvolutionText text{.question = question, .phases = phases, .device = device};
  options.json ? print_convolution_json(std::cout, text) : print_convolution_answer(std::cout, text, planned_for, options.page.of_stdout());
  return 0;
}

void check_exercise(const PlanArguments& options) {
  TW_CHECK_INPUT(
      options.recipe.overrides.empty() && options.switches.empty(),
      "--set and --switch change a recipe, and --gemm, --layer, --convolution and --op take none: --precision and --pitch say how "
      "they lie.");
  TW_CHECK_INPUT(options.steps == 0 && options.tokens == 0,
                 "--steps and --tokens are a run's, and --gemm, --layer, --convolution and --op are no recipe; name one.");
  TW_CHECK_INPUT(options.policy == "any" || options.tile.empty(), "--policy ", options.policy, " chooses a kernel, and --tile ",
                 options.tile, " is one of the guide's; leave out either.");
  const bool operation = !options.operation.empty(), convolution = !options.convolution.empty();
  TW_CHECK_INPUT(!convolution || (options.gemm.empty() && options.layer.empty() && !operation && !options.beta), "--convolution ",
                 options.convolution, " is three GEMMs of its own: it goes with none of --gemm, --layer, --op and --beta.");
  TW_CHECK_INPUT(!operation || !options.beta, "--beta is a GEMM's, and --op ", options.operation.empty() ? "" : options.operation.front(),
                 " is none; leave it out.");
  TW_CHECK_INPUT(!operation || (options.gemm.empty() && options.layer.empty() && options.tile.empty() && options.policy == "any"), "--op ",
                 options.operation.empty() ? "" : options.operation.front(),
                 " is no GEMM: it goes with none of --gemm, --layer, --tile and --policy.");
}

int run_plan(PlanArguments options) {
  const bool exercise = options.exercise();
  TW_CHECK_INPUT(!exercise || options.ranks.wanted() == 0, "--ranks and --gpus share out a recipe's step; name a recipe.");
  TW_CHECK_INPUT(!exercise || options.nodes == 1, "--nodes and --interconnect are of a recipe's ranks; name a recipe.");
  options.ranks.apply(options.recipe);
  TW_CHECK_INPUT(
      exercise != !options.recipe.path.empty(),
      "plan takes a recipe, or --gemm MxNxK, or --layer out<-in@tokens, or --convolution NxHxWxC->K,RxS, or --op NAME ROWSxCOLS: one kind "
      "of them, and not none.");
  if (exercise) check_exercise(options);
  TW_CHECK_INPUT((options.nodes > 1) == (options.interconnect_gb > 0.0),
                 "--nodes N and --interconnect RATE go together: several machines, and what a GPU sends to another one in GB/s.");
  TW_CHECK_INPUT(options.price == 0.0 || options.steps > 0 || options.tokens > 0,
                 "--price is what an hour costs, and nobody said how many: add --steps N or --tokens N.");
  TW_CHECK_INPUT(
      exercise || options.tile.empty(),
      "--tile goes with --gemm, --layer and --convolution; a recipe's tiles are forced with --set gemm.choice=<kernel>/<M>x<N>.");
  TW_CHECK_INPUT(options.draw.empty() || (!options.gemm.empty() && options.layer.empty()), "--draw ", options.draw.string(),
                 ": a picture is of one GEMM's tiles; name it with --gemm MxNxK.");
  TW_CHECK_INPUT(options.profile.empty() || options.device.device == "auto", "--for ", options.profile, " and --device ",
                 options.device.device, " name two devices; a plan is made for one.");
  if (!options.operation.empty()) return plan_operation(options);
  if (!options.convolution.empty()) return plan_convolution(options);
  return exercise ? plan_gemms(options) : plan_recipe(options);
}

}  // namespace

Command add_plan(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("plan", "what a step, a layer or a GEMM will cost on a device, here or not, and which numbers are better");
  const auto options = std::make_shared<PlanArguments>();
  options->recipe.add_to(*command);
  command->get_option("recipe")->required(false);
  options->device.add_to(*command);
  std::string keys;
  for (const DeviceProfile& profile : device_profiles()) keys += concat(keys.empty() ? "" : ", ", profile.key);
  command->add_option("--for", options->profile, "a GPU that need not be here: " + keys)->type_name("NAME");
  command->add_option("--switch", options->switches, "a key and its values: each setting's step beside (default: ablation.switches)")
      ->take_all()
      ->type_name("KEY=VALUE,VALUE");
  command->add_option("--gemm", options->gemm, "this GEMM alone")->type_name("MxNxK");
  command->add_option("--layer", options->layer, "this layer's three GEMMs alone")->type_name("OUT<-IN@TOKENS");
  command
      ->add_option("--convolution", options->convolution,
                   "this convolution's three GEMMs alone: images of H x W x C into K channels by a filter of R x S")
      ->excludes(command->get_option("recipe"))
      ->type_name("NxHxWxC->K,RxS[,stride=1][,pad=same][,dilation=1]");
  command->add_option("--op", options->operation, "an operation that is no GEMM, layer_norm for example, on rows x columns")
      ->expected(1, 2)
      ->excludes(command->get_option("recipe"))
      ->type_name("NAME ROWSxCOLS");
  command->add_option("--tile", options->tile, "with --gemm, --layer or --convolution: this tile, as the guide counts")->type_name("MxN");
  command
      ->add_option("--blocks-per-sm", options->blocks_per_sm,
                   "with --tile: CTAs of it on an SM at a time (default: the guide's number, or what is assumed)")
      ->check(CLI::Range(1, 1024))
      ->needs(command->get_option("--tile"));
  command->add_option("--draw", options->draw, "with --gemm: its tiles, coloured by the wave they run in, into this SVG")
      ->excludes(command->get_option("recipe"))
      ->type_name("FILE");
  command->add_option("--sm", options->sms, "so many SMs instead of the device's")->check(CLI::Range(1, 1 << 20));
  command->add_option("--precision", options->precision, "with --gemm, --layer, --convolution or --op: fp32, tf32, bf16, fp16 or fp64")
      ->excludes(command->get_option("recipe"));
  command->add_option("--pitch", options->pitch, "with --gemm, --layer or --convolution: how rows follow one another")
      ->check(CLI::IsMember({"packed", "aligned"}))
      ->excludes(command->get_option("recipe"))
      ->capture_default_str();
  command
      ->add_option("--policy", options->policy,
                   "with --gemm, --layer or --convolution: where Tensor Cores multiply, as gemm.alignment_policy")
      ->check(CLI::IsMember({"any", "strict"}))
      ->excludes(command->get_option("recipe"))
      ->capture_default_str();
  CLI::Option* steps =
      command->add_option("--steps", options->steps, "with a recipe: hours that so many steps take")->check(CLI::Range(1, 1 << 30));
  command->add_option("--tokens", options->tokens, "with a recipe: the same for so many real target tokens")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 50))
      ->excludes(steps);
  command->add_option("--price", options->price, "with --steps or --tokens: what a GPU costs an hour")->check(CLI::PositiveNumber);
  options->ranks.add_to(*command);
  command->add_option("--nodes", options->nodes, "machines that the ranks lie on, as many on each")->check(CLI::Range(1, 65536));
  command->add_option("--interconnect", options->interconnect_gb, "what a GPU sends to another machine, in GB/s")
      ->check(CLI::PositiveNumber);
  command->add_flag("--beta", options->beta, "with --gemm or --layer: alpha A B + beta C, whose C is read too")
      ->excludes(command->get_option("recipe"));
  command->add_flag("--json", options->json, "one JSON object a line");
  options->page.add_to(*command);
  return {command, [options] { return run_plan(*options); }};
}

}  // namespace tilewave

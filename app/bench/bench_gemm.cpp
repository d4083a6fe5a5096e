// tilewave bench gemm: what to measure, by options whose defaults are the device's.
#include <algorithm>
#include <cmath>

#include "app/bench/bench.h"
#include "app/bench/gemm_bench.h"
#include "app/bench/gemm_ladder.h"
#include "app/bench/generated_suite.h"
#include "app/options/usage.h"
#include "kernels/gemm/catalog.h"
#include "kernels/gemm/forced_gemm.h"

namespace tilewave {
namespace {

struct GemmOptions {
  DeviceOptions device;
  std::vector<std::string> layers, forms;
  std::string kernel, against, dtype, pitch, suite, seed;
  bool ladder = false, calibrate = false;
  double block_ms = 20.0, settle_ms = 0.0;
  PageOptions page;
  bool json = false;
  int rounds = 9;
};

void check_kernel(const std::string& name) {
  if (name.empty() || find_gemm_kernel(parse_forced_gemm(name).kernel) != nullptr) return;
  const std::vector<std::string> known = gemm_kernel_names();
  std::string kernels;
  for (const std::string& kernel : known) kernels += concat(kernels.empty() ? "" : ", ", kernel);
  throw InputError(concat("--kernel ", name, ": no kernel of the catalog is called so",
                          nearest_text(name, std::vector<std::string_view>(known.begin(), known.end())), "; there are ", kernels, "."));
}

// The layers that a claim about the CPU's GEMM is made over, all of it one claim.
GemmSuite cpu_suite(SuiteCut cut, PitchPolicy pitch) {
  if (cut.layers.empty()) {
    cut.layers = {"512<-512@512",  "1024<-1024@1024", "2048<-2048@2048", "512<-128@1536", "128<-512@1536",
                  "384<-128@1536", "8000<-128@1536",  "768<-768@4096",   "65<-127@33"};
  }
  if (cut.forms.empty()) cut.forms = {GemmForm::forward, GemmForm::dgrad, GemmForm::wgrad};
  GemmSuite suite = layers_suite(cut, pitch);
  suite.claims = {{.name = "all of them"}};
  for (GemmItem& item : suite.items) item.claim = 0;
  return suite;
}

std::uint64_t seed_of(const GemmOptions& options) { return options.seed.empty() ? 1 : parse_seed(options.seed); }

GemmSuite suite_of(const GemmOptions& options, Backend backend) {
  SuiteCut cut = {.forms = {}, .layers = options.layers};
  for (const std::string& form : options.forms) cut.forms.push_back(parse_gemm_form(form));
  if (options.suite == "transformer") return transformer_suite(cut);
  if (!options.suite.empty()) {
    GemmSuite suite = generated_suite(seed_of(options));
    std::erase_if(suite.items, [&](const GemmItem& item) {
      const auto kept = [](const auto& some, const auto& one) { return some.empty() || std::ranges::count(some, one) > 0; };
      return !kept(cut.forms, item.ours.form) || !kept(cut.layers, item.ours.layer.text());
    });
    return suite;
  }
  const std::string pitch = !options.pitch.empty() ? options.pitch : backend == Backend::cuda ? "packed" : "aligned";
  const PitchPolicy policy = pitch == "packed" ? PitchPolicy::packed : PitchPolicy::aligned;
  return backend == Backend::cuda ? layers_suite(cut, policy) : cpu_suite(cut, policy);
}

int run_gemm(const GemmOptions& options) {
  check_kernel(options.kernel);
  const DeviceInfo device = options.device.probe();
  const bool gpu = device.backend == Backend::cuda;
  TW_CHECK_INPUT(gpu || (options.suite.empty() && !options.calibrate), "--suite and --calibrate are for GPUs, and ", device.name,
                 " is none; add --device cuda, or leave them out.");
  TW_CHECK_INPUT(options.suite == "generated" || options.seed.empty(), "--seed ", options.seed, " draws --suite generated, and ",
                 options.suite, " is not drawn.");
  TW_CHECK_INPUT(gpu || options.dtype != "f16", "--dtype f16: on a CPU f32, tf32, f64 and bf16 are measured.");
  TW_CHECK_INPUT(std::isfinite(options.block_ms) && std::isfinite(options.settle_ms), "--block-ms and --settle-ms are numbers.");
  const GemmBench bench = {.suite = suite_of(options, device.backend),
                           .kernel = options.kernel,
                           .against = options.against,
                           .dtype = !options.dtype.empty() ? options.dtype
                                    : gpu                  ? "bf16"
                                                           : "f32",
                           .rounds = options.rounds,
                           .block_s = options.block_ms * 1e-3,
                           .settle_s = options.settle_ms * 1e-3,
                           .seed = options.suite == "generated" ? std::optional(seed_of(options)) : std::nullopt,
                           .calibrate = options.calibrate,
                           .page = options.page.of_stdout(),
                           .json = options.json};
  TW_CHECK_INPUT(!bench.suite.items.empty(), "the suite has none of the forms on the layers asked for; leave --form or --layer out.");
  const Queue queue = options.device.make_queue(device);
  return options.ladder ? gemm_ladder(queue, device, bench) : bench_gemm(queue, device, bench);
}

}  // namespace

Command add_bench_gemm(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("gemm", "every kernel and tile on fully-connected layers, in all three roles");
  const auto options = std::make_shared<GemmOptions>();
  command->add_option("--layer", options->layers, "out<-in@tokens; may be repeated (default: a suite for the device)")->take_all();
  CLI::Option* kernel = command->add_option("--kernel", options->kernel, "measure this kernel of the catalog alone, or a tile of its");
  CLI::Option* ladder =
      command->add_flag("--ladder", options->ladder, "the best tile of every kernel, in the catalog's order")->excludes(kernel);
  command->add_option("--row", options->kernel, "what --kernel was called")->group("")->excludes(ladder);
  command->add_option("--against", options->against,
                      "a peer measured in the same run: openblas, or on a GPU cublas, cublas_gemv or cublaslt");
  command->add_option("--form", options->forms, "what is asked of a layer; may be repeated (default: the plain ones)")
      ->check(CLI::IsMember(gemm_forms()))
      ->take_all();
  CLI::Option* suite =
      command
          ->add_option("--suite", options->suite,
                       "GPU, with claims and their targets: transformer, or generated, drawn by --seed; --layer and --form cut it")
          ->check(CLI::IsMember({"transformer", "generated"}))
          ->excludes(ladder);
  command->add_option("--seed", options->seed, "of --suite generated: a number, or the first eight hexadecimal digits of a commit")
      ->needs(suite);
  command->add_flag("--calibrate", options->calibrate, "GPU: predict by a cost model that this run measures first, on other shapes")
      ->excludes(ladder);
  command->add_option("--dtype", options->dtype, "GPU: bf16 (default), f16, tf32, f32 or f64; CPU: f32 (default), tf32, f64 or bf16");
  command->add_option("--pitch", options->pitch, "how rows follow one another (default: packed on a GPU, aligned on a CPU)")
      ->check(CLI::IsMember({"packed", "aligned"}))
      ->excludes(suite);
  command->add_option("--block-ms", options->block_ms, "of one measured block")->check(CLI::Range(1.0, 1000.0))->capture_default_str();
  command->add_option("--settle-ms", options->settle_ms, "of a candidate's own launches before each of its blocks")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "interleaved rounds")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_flag("--json", options->json, "one JSON object a line");
  options->page.add_to(*command);
  options->device.add_to(*command);
  return {command, [options] { return run_gemm(*options); }};
}

}  // namespace tilewave

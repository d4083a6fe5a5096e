// Each candidate's launches over all sets of operands are one captured graph, so that neither side's time is the host's. Ratios are
// by framework/measure's rule: ours / peer in speed, the best of each side after screening, medians of interleaved rounds.
#include "app/bench_gemm_cuda.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <random>

#include "framework/io/json_lines.h"
#include "framework/measure/interleave.h"
#include "framework/pitch.h"
#include "kernels/error.h"
#include "kernels/gemm.h"
#include "kernels/gemm/catalog.h"
#include "kernels/graph.h"
#include "kernels/memory.h"

namespace tilewave {
namespace {

// What a training step asks of a layer. wgrad_accumulate adds into an fp32 gradient; forward_gelu has a bias and stores the GELU's
// input; dgrad_gelu multiplies by the GELU's derivative.
enum class Form { forward, dgrad, wgrad, wgrad_accumulate, forward_gelu, dgrad_gelu };
const std::vector<std::string> kForms = {"forward", "dgrad", "wgrad", "wgrad_accumulate", "forward_gelu", "dgrad_gelu"};

constexpr std::int64_t kRotatedBytes = 256 << 20;  // operands take turns through more than any second-level cache

struct Types {
  DType operand = DType::bf16, gradient = DType::f32;
  MathMode math = MathMode::ieee;
};
Types types_of(const std::string& name) {
  if (name == "bf16") return {.operand = DType::bf16};
  if (name == "f16") return {.operand = DType::f16};
  if (name == "tf32") return {.operand = DType::f32, .math = MathMode::tf32};
  if (name == "f32") return {.operand = DType::f32};
  if (name == "f64") return {.operand = DType::f64, .gradient = DType::f64};
  throw InputError(sentence("--dtype ", name, ": there are bf16, f16, tf32, f32 and f64."));
}

// Random normal numbers of one type, on the host: a matrix repeats them from a place of its own.
class Numbers {
 public:
  explicit Numbers(DType dtype) : dtype_(dtype), bytes_(static_cast<std::size_t>(kCount * size_of(dtype))) {
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < kCount; ++i) {
      const float value = normal(random);
      std::byte* const at = bytes_.data() + i * size_of(dtype);
      const auto put = [&](auto stored) { std::memcpy(at, &stored, sizeof stored); };
      if (dtype == DType::f64) put(static_cast<double>(value));
      if (dtype == DType::f32) put(value);
      if (dtype == DType::bf16) put(bf16(value));
      if (dtype == DType::f16) put(f16(value));
    }
  }
  void fill(Queue& queue, const MatrixView& view, std::int64_t from) const {
    const std::int64_t bytes = view.rows * view.ld * size_of(dtype_), all = static_cast<std::int64_t>(bytes_.size());
    std::int64_t at = from % kCount * size_of(dtype_);
    for (std::int64_t done = 0; done < bytes;) {
      const std::int64_t some = std::min(bytes - done, all - at);
      copy_to_device(queue, static_cast<std::byte*>(view.data) + done, bytes_.data() + at, some);
      done += some;
      at = 0;
    }
    synchronize(queue);
  }

 private:
  static constexpr std::int64_t kCount = (1 << 22) + 3;  // odd: rows of a power of two do not repeat one another

  DType dtype_;
  std::vector<std::byte> bytes_;
};

class Bench {
 public:
  Bench(Queue queue, DeviceInfo device, const CudaGemmBench& options)
      : queue_(std::move(queue)), device_(std::move(device)), options_(options), types_(types_of(options.dtype)) {
    interleave_ = {.block_s = options.block_s, .rounds = options.rounds};
  }

  int run_all() {
    if (!options_.json) {
      std::printf("# %s, %s, %s pitch\n%-22s %-17s %-30s %9s %8s %9s", device_.name.c_str(), options_.dtype.c_str(), options_.pitch.c_str(),
                  "layer", "form", "row/tile", "time us", "TFLOP/s", "predicted");
      std::printf(" %-30s %9s %8s %6s\n", "chosen by the model", "peer us", "TFLOP/s", "ratio");
    }
    for (std::size_t i = 0; i < options_.layers.size(); ++i) {
      for (const std::string& form :
           options_.forms.empty() ? std::vector<std::string>(kForms.begin(), kForms.begin() + 4) : options_.forms) {
        const auto which = std::find(kForms.begin(), kForms.end(), form);
        TW_CHECK_INPUT(which != kForms.end(), "--form ", form, ": there are ", join(kForms), ".");
        run_one(options_.layers[i], options_.shapes[i], static_cast<Form>(which - kForms.begin()));
      }
    }
    if (!options_.json && !options_.against.empty()) {
      for (const auto& [form, sums] : ratios_) {
        std::printf("%-17s geometric mean of the ratios %.3f, least %.3f, over %d\n", form.c_str(), std::exp(sums.logarithms / sums.count),
                    sums.least, sums.count);
      }
    }
    return 0;
  }

 private:
  struct Ratios {
    double logarithms = 0.0, least = HUGE_VAL;
    int count = 0;
  };

  static std::string join(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
  }

  MatrixView matrix(std::int64_t rows, std::int64_t cols, DType dtype, std::int64_t from) {
    const std::int64_t ld =
        rows == 1 ? cols : pitch_of(cols, dtype, options_.pitch == "aligned" ? PitchPolicy::aligned : PitchPolicy::packed);
    memory_.push_back(buffer(rows * ld * size_of(dtype)));
    const MatrixView view = {.data = memory_.back().get(), .rows = rows, .cols = cols, .ld = ld, .dtype = dtype};
    const auto known = numbers_.try_emplace(dtype, dtype).first;
    known->second.fill(queue_, view, from);
    return view;
  }
  std::shared_ptr<void> buffer(std::int64_t bytes) {
    return {allocate(queue_, std::max<std::int64_t>(bytes, 1)), [this](void* data) { release(queue_, data); }};
  }

  GemmArgs operands(const Layer& layer, Form form, std::int64_t seed) {
    const auto x = [&] { return matrix(layer.tokens, layer.in, types_.operand, 3 * seed); };
    const auto w = [&] { return matrix(layer.out, layer.in, types_.operand, 5 * seed + 1); };
    const auto dy = [&] { return matrix(layer.tokens, layer.out, types_.operand, 7 * seed + 2); };
    GemmArgs args;
    args.math = types_.math;
    switch (form) {
      case Form::forward:
      case Form::forward_gelu:
        args.role = GemmRole::forward;
        args.a = w();
        args.b = x();
        args.d = matrix(layer.tokens, layer.out, types_.operand, 1);
        if (form == Form::forward) break;
        args.bias = matrix(1, layer.out, types_.operand, 2);
        args.activation = Activation::gelu_tanh;
        args.saved_input = matrix(layer.tokens, layer.out, types_.operand, 1);
        break;
      case Form::dgrad:
      case Form::dgrad_gelu:
        args.role = GemmRole::dgrad;
        args.a = w();
        args.a_major = Major::m;
        args.b = dy();
        args.d = matrix(layer.tokens, layer.in, types_.operand, 1);
        if (form == Form::dgrad) break;
        args.derivative = Activation::gelu_tanh;
        args.derivative_of = matrix(layer.tokens, layer.in, types_.operand, 11 * seed);
        break;
      case Form::wgrad:
      case Form::wgrad_accumulate:
        args.role = GemmRole::wgrad;
        args.a = x();
        args.a_major = Major::m;
        args.b = dy();
        args.b_major = Major::n;
        args.d = matrix(layer.out, layer.in, form == Form::wgrad ? types_.operand : types_.gradient, 1);
        args.accumulate = form == Form::wgrad_accumulate;
        break;
    }
    return args;
  }

  // A candidate that replays one launch for every set of operands.
  Candidate candidate(const std::vector<GemmArgs>& sets, const GemmPlan& plan, const std::string& name, bool always_final) {
    const auto kept = std::make_shared<GemmPlan>(plan);
    if (workspace_bytes_ < plan.workspace_bytes) {
      workspace_ = buffer(plan.workspace_bytes);
      workspace_bytes_ = plan.workspace_bytes;
    }
    const auto launch_all = [this, &sets, kept, workspace = workspace_] {
      for (GemmArgs args : sets) {
        args.plan = kept.get();
        args.workspace = workspace.get();
        run(queue_, args);
      }
    };
    launch_all();
    synchronize(queue_);
    const auto graph = std::make_shared<Graph>(capture(queue_, launch_all));
    return {.name = name,
            .launch = [graph](std::size_t) { graph->replay(); },
            .always_final = always_final,
            .wait = [this] { synchronize(queue_); }};
  }

  void run_one(const std::string& text, const Layer& layer, Form form) {
    std::vector<GemmArgs> sets = {operands(layer, form, 1)};
    const GemmProblem problem = problem_of(sets[0]);
    const std::int64_t count = std::clamp<std::int64_t>(kRotatedBytes / problem.bytes() + 1, 2, 16);
    for (std::int64_t set = 2; set <= count; ++set) sets.push_back(operands(layer, form, set));

    const GemmPlan chosen = choose(problem, device_, {.forced = options_.row});
    const auto name_of_plan = [](const GemmPlan& plan) { return sentence(plan.row, "/", plan.tile.m, "x", plan.tile.n); };
    std::vector<Candidate> ours, peers;
    std::map<std::string, GemmPlan> plans;
    for (const GemmRow* row : gemm_catalog()) {
      const bool wanted = options_.row.empty() ? row->name != "naive" && !row->reference : row->name == options_.row;
      if (!wanted || row->launch_cuda == nullptr || row->backend != Backend::cuda || !row->refuse(problem, device_).empty()) continue;
      for (const Tile tile : row->tiles) {
        const GemmPlan plan = row->plan(problem, tile, device_);
        // A row that the model puts far behind is not worth its time here; asked for by name, it is measured.
        if (options_.row.empty() && plan.predicted_s > 6.0 * chosen.predicted_s) continue;
        plans[name_of_plan(plan)] = plan;
        ours.push_back(candidate(sets, plan, name_of_plan(plan), plan == chosen));
      }
    }
    if (!options_.against.empty()) {
      const GemmRow* const row = find_gemm_row(Backend::cuda, options_.against);
      TW_CHECK_INPUT(row != nullptr && row->reference, "--against ", options_.against, ": a GPU's peers are cublas and cublaslt.");
      GemmPlan plan = row->plan(problem, row->tiles.front(), device_);
      auto* const cuda = std::get_if<CudaQueue>(&queue_);
      const int candidates = row->candidates != nullptr ? row->candidates(*cuda, sets[0]) : 1;
      for (plan.algorithm = 0; plan.algorithm < candidates; ++plan.algorithm) {
        peers.push_back(candidate(sets, plan, sentence(options_.against, " ", plan.algorithm), plan.algorithm == 0));
      }
    }
    const Comparison result = compare(ours, peers, interleave_);
    interleave_.load_s = 0.0;  // the process is warm now
    print(text, form, problem, static_cast<double>(sets.size()), chosen, plans, result);
    ours.clear();
    peers.clear();
    memory_.clear();
  }

  void print(const std::string& layer, Form form, const GemmProblem& problem, double launches, const GemmPlan& chosen,
             const std::map<std::string, GemmPlan>& plans, const Comparison& result) {
    const std::string& form_name = kForms[static_cast<std::size_t>(form)];
    const Timing& best = result.ours.front();
    const GemmPlan& plan = plans.at(best.name);
    const double seconds = best.median_s / launches, flops = static_cast<double>(problem.flops());
    const std::string chosen_name = sentence(chosen.row, "/", chosen.tile.m, "x", chosen.tile.n);
    const auto by_model =
        std::find_if(result.ours.begin(), result.ours.end(), [&](const Timing& timing) { return timing.name == chosen_name; });
    const double peer = result.peers.empty() ? 0.0 : result.peers.front().median_s / launches;
    if (peer > 0.0) {
      Ratios& ratios = ratios_[form_name];
      ratios.logarithms += std::log(peer / seconds);
      ratios.least = std::min(ratios.least, peer / seconds);
      ++ratios.count;
    }
    if (options_.json) {
      JsonObject object;
      object.add("device", device_.name)
          .add("layer", layer)
          .add("form", form_name)
          .add("dtype", options_.dtype)
          .add("pitch", options_.pitch);
      object.add("m", problem.m).add("n", problem.n).add("k", problem.k).add("row", plan.row);
      object.add("tile", sentence(plan.tile.m, "x", plan.tile.n)).add("split", plan.split).add("time_us", seconds * 1e6);
      object.add("lower_quartile_us", best.lower_quartile_s / launches * 1e6)
          .add("upper_quartile_us", best.upper_quartile_s / launches * 1e6);
      object.add("tflops", flops / seconds * 1e-12).add("predicted_us", plan.predicted_s * 1e6).add("chosen", chosen_name);
      object.add("chosen_us", by_model->median_s / launches * 1e6);
      if (peer > 0.0) {
        object.add("peer", result.peers.front().name).add("peer_us", peer * 1e6).add("peer_tflops", flops / peer * 1e-12);
        object.add("peer_lower_quartile_us", result.peers.front().lower_quartile_s / launches * 1e6);
        object.add("peer_upper_quartile_us", result.peers.front().upper_quartile_s / launches * 1e6).add("ratio", peer / seconds);
      }
      std::cout << object.text() << std::endl;
      return;
    }
    std::printf("%-22s %-17s %-30s %9.1f %8.1f %9.1f %-30s", layer.c_str(), form_name.c_str(), best.name.c_str(), seconds * 1e6,
                flops / seconds * 1e-12, plan.predicted_s * 1e6,
                chosen_name == best.name
                    ? "the same"
                    : sentence(chosen_name, " ", static_cast<int>(std::lround(100.0 * best.median_s / by_model->median_s)), " %").c_str());
    if (peer > 0.0) std::printf(" %9.1f %8.1f %6.3f", peer * 1e6, flops / peer * 1e-12, peer / seconds);
    std::printf("\n");
    std::fflush(stdout);
  }

  Queue queue_;
  DeviceInfo device_;
  const CudaGemmBench& options_;
  Types types_;
  InterleaveOptions interleave_;
  std::map<DType, Numbers> numbers_;
  std::vector<std::shared_ptr<void>> memory_;
  std::shared_ptr<void> workspace_;
  std::int64_t workspace_bytes_ = 0;
  std::map<std::string, Ratios> ratios_;
};

}  // namespace

std::vector<std::string> portable_suite() {
  return {"4096<-1024@2048", "4096<-1024@4096",  "4096<-1024@5120",  "4096<-1024@16384", "1024<-4096@5120",
          "1024<-1024@4096", "1024<-1024@16384", "3072<-1024@5120",  "33712<-1024@5120", "50304<-768@16384",
          "768<-768@65536",  "3072<-768@65536",  "768<-3072@65536",  "1024<-1024@1024",  "2048<-2048@2048",
          "4096<-4096@4096", "8192<-8192@8192",  "33708<-1024@5120", "50257<-768@16384"};
}

std::vector<std::string> gemm_forms() { return kForms; }

int bench_gemm_cuda(Queue queue, const DeviceInfo& device, const CudaGemmBench& options) {
  return Bench(std::move(queue), device, options).run_all();
}

}  // namespace tilewave

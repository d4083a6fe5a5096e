// Every neighbour is planned as the question itself is.
#include "models/planning/gemm_answer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/core/device_profiles.h"
#include "kernels/core/error.h"
#include "kernels/core/unit_rates.h"

namespace tilewave {
namespace {

constexpr double kReachOfSizes = 0.125, kWorthSaying = 0.005, kNearlyBest = 0.9;
constexpr std::int64_t kSizeMultiples[] = {8, 64, 128, 256};
constexpr std::int64_t kWidestMultiple = 256;
constexpr std::int64_t kVocabularyFrom = 30000;  // outputs: BERT's 30,522 is a small vocabulary

std::int64_t& size_of_layer(LayerGemm& layer, AskedSize size) {
  return size == AskedSize::out ? layer.out : size == AskedSize::tokens ? layer.tokens : layer.in;
}

struct Work {
  double flops = 0.0, seconds = 0.0;
  double rate() const { return flops / seconds; }
};
Work work_of(const GemmQuestion& question) {
  Work work;
  for (const GemmRole role : question.roles()) {
    const GemmProblem problem = question.problem(role);
    work.flops += static_cast<double>(problem.flops());
    work.seconds += question.plan(problem).predicted_s;
  }
  return work;
}

// Whole tiles and whole waves of the plans, along one size.
std::vector<std::int64_t> steps_of(const GemmQuestion& question, AskedSize size) {
  std::vector<std::int64_t> steps(std::begin(kSizeMultiples), std::end(kSizeMultiples));
  for (const GemmRole role : question.roles()) {
    const bool is_m = size == AskedSize::out ? role == GemmRole::forward : size == AskedSize::in && role != GemmRole::forward;
    const bool is_n = size == AskedSize::tokens ? role != GemmRole::wgrad : size == AskedSize::out && role == GemmRole::wgrad;
    if (!is_m && !is_n) continue;
    const GemmPlan plan = question.plan(question.problem(role));
    steps.push_back(is_m ? plan.tile.m : plan.tile.n);
    const std::optional<std::int64_t> period = is_n ? period_of_whole_waves(plan) : std::nullopt;
    if (period) steps.push_back(*period);
  }
  return steps;
}

bool may_shrink(std::int64_t from, AskedSize size) {
  if (size == AskedSize::tokens) return true;
  return from % 8 == 0 && (size == AskedSize::in || from < kVocabularyFrom);
}

std::vector<std::int64_t> candidates_of(const GemmQuestion& question, AskedSize size) {
  LayerGemm layer = question.layer;
  const std::int64_t from = size_of_layer(layer, size);
  const auto reach = static_cast<std::int64_t>(kReachOfSizes * static_cast<double>(from));
  const std::int64_t most = std::max(from + reach, round_up(from + 1, from < kWidestMultiple ? kWidestMultiple : kSizeMultiples[1]));
  std::vector<std::int64_t> numbers;
  for (const std::int64_t step : steps_of(question, size)) {
    const std::int64_t below = (from - 1) / step * step, above = (from / step + 1) * step;
    if (may_shrink(from, size) && below > 0 && below >= from - reach) numbers.push_back(below);
    if (above <= most) numbers.push_back(above);
  }
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

// The nearest to `from` of those with nearly the best one's gain.
std::optional<BetterSize> nearest_of_the_best(const std::vector<BetterSize>& all) {
  double best = 0.0;
  for (const BetterSize& one : all) best = std::max(best, one.rate_gain);
  std::optional<BetterSize> nearest;
  for (const BetterSize& one : all) {
    if (one.rate_gain < kWorthSaying || one.rate_gain < kNearlyBest * best) continue;
    if (!nearest || std::abs(one.to - one.from) < std::abs(nearest->to - nearest->from)) nearest = one;
  }
  return nearest;
}

// Rates that the guides print of a shape on a GPU.
struct GuidesRate {
  std::string_view profile;
  std::int64_t out, in, least_tokens;
  std::optional<GemmRole> role;
  std::string_view text;
};
constexpr GuidesRate kGuidesRates[] = {
    {"a100", 1024, 4096, 2048, std::nullopt,
     "the guide measured about 250 TFLOP/s for this layer at its larger batches (Optimizing Linear/Fully-Connected Layers, 3.2: cuBLAS "
     "11.4)"},
    {"v100", 1024, 4096, 2048, std::nullopt,
     "the guide measured more than 90 TFLOP/s for this layer at its larger batches (Deep Learning Performance, 6.1.2: cuBLAS 10.1)"},
    {"v100", 4096, 1024, 5120, GemmRole::dgrad,
     "the guide measured 95 to 100 TFLOP/s for this (Optimizing Linear/Fully-Connected Layers, 4.2.3; Deep Learning Performance, 9.1)"}};

}  // namespace

std::vector<GemmRole> GemmQuestion::roles() const {
  if (as == AskedAs::gemm) return {GemmRole::forward};
  return {GemmRole::forward, GemmRole::dgrad, GemmRole::wgrad};
}

GemmProblem GemmQuestion::problem(GemmRole role) const {
  LayerGemm one = layer;
  one.role = role;
  GemmProblem problem = plain_gemm(one, precision, pitch);
  problem.epilogue.residual = reads_c;
  return problem;
}

std::string_view name_of(AskedSize size, AskedAs as) {
  constexpr std::string_view kOfGemm[] = {"M", "N", "K"}, kOfLayer[] = {"out", "tokens", "in"};
  return (as == AskedAs::gemm ? kOfGemm : kOfLayer)[static_cast<int>(size)];
}

std::vector<BetterSize> better_sizes(const GemmQuestion& question) {
  const Work work = work_of(question);
  std::vector<BetterSize> better;
  for (const AskedSize size : {AskedSize::out, AskedSize::tokens, AskedSize::in}) {
    std::vector<BetterSize> smaller, larger;
    for (const std::int64_t number : candidates_of(question, size)) {
      GemmQuestion other = question;
      std::int64_t& asked = size_of_layer(other.layer, size);
      const std::int64_t from = std::exchange(asked, number);
      const Work changed = work_of(other);
      (number < from ? smaller : larger)
          .push_back({.size = size,
                      .from = from,
                      .to = number,
                      .rate_gain = changed.rate() / work.rate() - 1.0,
                      .time_gain = 1.0 - changed.seconds / work.seconds});
    }
    for (const std::vector<BetterSize>* const all : {&larger, &smaller}) {
      const std::optional<BetterSize> one = nearest_of_the_best(*all);
      if (one) better.push_back(*one);
    }
  }
  return better;
}

// 2 M N K > ratio (s (M K + K N) + d M N), solved for N.
std::optional<std::int64_t> math_limited_from(const GemmProblem& problem, const DeviceInfo& device) {
  const double ratio = ops_per_byte(device, problem.operand_dtype, problem.math);
  if (ratio <= 0.0) return std::nullopt;
  const auto m = static_cast<double>(problem.m), k = static_cast<double>(problem.k);
  const auto s = static_cast<double>(size_of(problem.operand_dtype)), d = static_cast<double>(size_of(problem.output_dtype));
  const double gained = 2.0 * m * k - ratio * (s * k + d * m);  // by every further N
  if (gained <= 0.0) return std::nullopt;
  const double n = std::floor(ratio * s * m * k / gained) + 1.0;
  return n < 0x1p62 ? std::optional(static_cast<std::int64_t>(n)) : std::nullopt;
}

std::int64_t columns_of_whole_waves(std::int64_t slots, std::int64_t items_down) { return slots / std::gcd(slots, items_down); }

std::optional<std::int64_t> period_of_whole_waves(const GemmPlan& plan) {
  if (plan.streams_k || plan.whole_tiles > 0 || plan.tiling.slots <= 0) return std::nullopt;
  return columns_of_whole_waves(plan.tiling.slots, plan.tiling.tiles_m * plan.split) * plan.tile.n;
}

AdvisedMultiple advised_multiple(DType operands, const DeviceInfo& device) {
  const std::int64_t best = device.backend == Backend::cuda ? best_aligned_bytes(device.capability) : kLeastAlignedBytes;
  return {.least = kLeastAlignedBytes / size_of(operands), .best = best / size_of(operands)};
}

std::string guides_own_rate(const GemmProblem& problem, const DeviceInfo& device) {
  const DeviceProfile* const profile = find_profile(device);
  if (profile == nullptr || size_of(problem.operand_dtype) != 2) return {};
  const bool wgrad = problem.role == GemmRole::wgrad, forward = problem.role == GemmRole::forward;
  const std::int64_t out = forward ? problem.m
                           : wgrad ? problem.n
                                   : problem.k,
                     in = forward ? problem.k : problem.m, tokens = wgrad ? problem.k : problem.n;
  for (const GuidesRate& one : kGuidesRates) {
    const bool same = profile->key == one.profile && out == one.out && in == one.in && tokens >= one.least_tokens;
    if (same && (!one.role || *one.role == problem.role)) return std::string(one.text);
  }
  return {};
}

}  // namespace tilewave

// Each candidate is a recipe of its own, planned from its own trace.
#include "models/planning/advice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "framework/tensor/precision.h"
#include "kernels/core/error.h"
#include "kernels/ops/attention.h"
#include "models/planning/layered_plan.h"
#include "models/planning/resolve.h"
#include "models/planning/wave_free.h"
#include "models/step/memory_check.h"

namespace tilewave {
namespace {

constexpr double kReach = 0.125;    // how far from what the recipe says candidates lie
constexpr double kNearLimit = 0.1;  // of the device's memory, either side

constexpr std::string_view kSourceRows = "source rows", kTargetRows = "target rows";
constexpr std::string_view kSourceKey = "batch.source_tokens=", kTargetKey = "batch.target_tokens=";

constexpr std::string_view kAlignmentSection = "Matrix Multiplication Background, 2.2";
// What changes nothing of that.
constexpr std::string_view kFewerKeys = "not in the guide: a query sees fewer keys",
                           kLongerSequences = "not in the guide: longer sequences are packed otherwise",
                           kTensorCoreHeads = "not in the guide: heads of 32, 64 and 128 columns run on Tensor Cores",
                           kOtherHeads = "not in the guide: attention's own time, both widths aligned",
                           kSharedUpdate = "not in the guide: more rows share launches and the update",
                           kFewerRows = "not in the guide: what is no GEMM gains";

struct Candidate {
  std::int64_t value = 0;
  Recipe recipe;
  std::string set;
  std::string_view section;
};

struct Quantity {
  std::string name;
  std::int64_t from = 0;
  std::vector<Candidate> candidates;
  std::string part;
  std::function<double(const StepPlan&)> part_seconds;
  std::string_view section;  // of a candidate that has none of its own
  bool of_rows = false;      // whose section speaks of GEMMs alone
  std::string remark = {};
  std::vector<std::string_view> layers = {};  // of `part`, whose GEMMs have the number as a dimension: it is told what that costs them
};

double attention_seconds(const StepPlan& step) {
  double seconds = 0.0;
  for (const OperationLine& line : step.operations) {
    const bool attention = line.operation == AttentionArgs::kOperation || line.operation == AttentionBackwardArgs::kOperation;
    seconds += attention ? line.predicted_s : 0.0;
  }
  return seconds;
}

// The numbers within kReach that are the last before and the first past `from` of each multiple.
std::vector<std::int64_t> neighbours(std::int64_t from, std::initializer_list<std::int64_t> multiples) {
  std::vector<std::int64_t> numbers;
  for (const std::int64_t multiple : multiples) {
    for (const std::int64_t number : {(from - 1) / multiple * multiple, (from / multiple + 1) * multiple}) {
      const bool near = std::abs(static_cast<double>(number - from)) <= kReach * static_cast<double>(from);
      if (number > 0 && number != from && near && std::ranges::find(numbers, number) == numbers.end()) numbers.push_back(number);
    }
  }
  return numbers;
}

ResolvedRecipe resolved_by(RealTokenCounter& tokens, const Recipe& recipe) {
  ResolvedRecipe resolved = resolve(recipe);
  resolved.segments = tokens.segments(resolved);
  return resolved;
}

class Adviser {
 public:
  Adviser(const Recipe& recipe, const DeviceInfo& device, RealTokenCounter& tokens, WaveFreeBatch asked)
      : recipe_(predictable(recipe)),
        asked_waves_(asked),
        device_(device),
        counter_(tokens),
        resolved_(resolved_by(tokens, recipe_)),
        step_(plan_step(resolved_, device)),
        worth_({.seconds = step_.predicted_s(), .tokens = counter_(resolved_)}) {}

  std::vector<Advice> advise() {
    std::vector<Advice> all;
    const bool pictures = sees_pictures(recipe_.model);  // whose rows and segments are a picture's
    std::vector<Quantity> quantities = {d_ff(), heads()};
    if (!classifies(recipe_.model)) quantities.insert(quantities.begin(), vocabulary());
    if (!pictures) quantities.push_back(sequence());
    for (const Quantity& quantity : quantities) {
      if (quantity.name == "heads" && has_heads_of_its_own()) continue;  // others would be another model's
      if (quantity.name == "d_ff" && !pictures) append(all, batches());
      append(all, {quantity});
    }
    return all;
  }

  // Advice on one side's rows that sets the other side's too leaves nothing to say of those: of two such the one that gains more stands.
  static std::vector<Advice> without_contradictions(const std::vector<Advice>& all) {
    std::vector<const Advice*> by_gain;
    for (const Advice& advice : all) by_gain.push_back(&advice);
    std::stable_sort(by_gain.begin(), by_gain.end(), [](const Advice* a, const Advice* b) {
      return std::pair(a->advised, a->step_gain) > std::pair(b->advised, b->step_gain);
    });
    const auto sets = [](const Advice& advice, std::string_view key) {
      if (!advice.advised) return advice.quantity == (key == kSourceKey ? kSourceRows : kTargetRows);
      return advice.set.find(key) != std::string::npos;
    };
    std::vector<const Advice*> standing;
    for (const Advice* advice : by_gain) {
      const bool contradicted = std::ranges::any_of(standing, [&](const Advice* other) {
        const bool same_key =
            (sets(*advice, kSourceKey) && sets(*other, kSourceKey)) || (sets(*advice, kTargetKey) && sets(*other, kTargetKey));
        return other->quantity != advice->quantity && same_key;
      });
      if (!contradicted) standing.push_back(advice);
    }
    std::vector<Advice> left;
    for (const Advice& advice : all) {
      if (std::ranges::count(standing, &advice) > 0) left.push_back(advice);
    }
    return left;
  }

 private:
  void append(std::vector<Advice>& all, const std::vector<Quantity>& quantities) {
    std::vector<Advice> together;
    for (const Quantity& quantity : quantities) {
      const std::vector<Advice> advice = advice_of(quantity);
      together.insert(together.end(), advice.begin(), advice.end());
    }
    together = without_contradictions(together);
    all.insert(all.end(), together.begin(), together.end());
  }

  void add(Quantity& quantity, std::int64_t value, const std::function<void(Recipe&)>& change, std::string set) {
    Candidate candidate{.value = value, .recipe = recipe_, .set = std::move(set), .section = quantity.section};
    change(candidate.recipe);
    quantity.candidates.push_back(std::move(candidate));
  }

  // What a pitch does instead of padding.
  std::string remark_on_rows(std::int64_t elements, DType dtype) const {
    if (elements % (kPitchBytes / size_of(dtype)) == 0) return {};
    return recipe_.guidelines.row_pitch == PitchPolicy::aligned
               ? concat("row_pitch = aligned starts its rows on ", kPitchBytes, " bytes already, without padding")
               : concat("--set guidelines.row_pitch=aligned starts its rows on ", kPitchBytes, " bytes without padding");
  }

  // Padding alone: no token of a vocabulary is given up for a rounder number.
  Quantity vocabulary() {
    Quantity quantity{.name = "vocabulary",
                      .from = resolved_.shapes.vocabulary_padded,
                      .part = "projection",
                      .part_seconds = [](const StepPlan& step) { return step.seconds_of_layer("projection"); },
                      .section = "Optimizing Linear/Fully-Connected Layers, 4.2.1",
                      .remark = remark_on_rows(resolved_.shapes.vocabulary_padded, precision_table(recipe_.run.precision).logits)};
    for (const std::int64_t multiple : {8, 64, 128}) {
      const std::int64_t padded = round_up(recipe_.model.vocabulary, multiple);
      if (padded == quantity.from) continue;
      add(
          quantity, padded, [&](Recipe& changed) { changed.guidelines.pad_vocabulary_to = multiple; },
          concat("--set guidelines.pad_vocabulary_to=", multiple));
    }
    return quantity;
  }

  std::vector<Quantity> batches() {
    std::vector<Quantity> quantities;
    Recipe asked = recipe_;
    if (asked_waves_ == WaveFreeBatch::off) {  // nobody has checked what is said of them
      const GuidelinesConfig usual;
      asked.guidelines.wave_layer = usual.wave_layer;
      asked.guidelines.wave_role = usual.wave_role;
      asked.guidelines.wave_tile = usual.wave_tile;
    }
    const auto whole = [&](std::int64_t multiple) { return std::lcm(multiple, recipe_.guidelines.batch_multiple_of); };
    for (const WaveRows& rows : wave_rows(asked, device_)) {
      Quantity quantity{
          .name = rows.source && rows.target ? "source and target rows"
                  : rows.source              ? std::string(kSourceRows)
                                             : std::string(kTargetRows),
          .from = rows.target ? resolved_.shapes.target_rows : resolved_.shapes.source_rows,
          .part = asked.guidelines.wave_layer,
          .part_seconds = [layer = asked.guidelines.wave_layer](const StepPlan& step) { return step.seconds_of_layer(layer); },
          .section = "Optimizing Linear/Fully-Connected Layers, 4.2.2 and 4.2.3",
          .of_rows = true};
      std::vector<std::int64_t> numbers = neighbours(quantity.from, {whole(8), whole(64), whole(128)});
      const auto reach = static_cast<std::int64_t>(kReach * static_cast<double>(quantity.from));
      for (const RowsPlan& step :
           wave_free_steps(asked, rows, std::max<std::int64_t>(1, quantity.from - reach), quantity.from + reach, device_)) {
        numbers.push_back(step.rows);
      }
      for (const std::int64_t number : numbers) {
        if (number < recipe_.batch.sequence || number == quantity.from) continue;
        add_rows(quantity, number, rows.moved(recipe_, number));
        if (rows.source && rows.target) continue;
        // The other side in proportion: rows of one side alone may well be padding rows.
        const std::int64_t other = rows.source ? recipe_.batch.target_tokens : recipe_.batch.source_tokens;
        const std::int64_t beside = round_up(ceil_div(other * number, quantity.from), whole(8));
        const double most = kReach * static_cast<double>(other) + 8.0;
        if (other == 0 || beside < recipe_.batch.sequence || std::abs(static_cast<double>(beside - other)) > most) continue;
        Recipe both = rows.moved(recipe_, number);
        (rows.source ? both.batch.target_tokens : both.batch.source_tokens) = beside;
        add_rows(quantity, number, both);
      }
      quantities.push_back(std::move(quantity));
    }
    return quantities;
  }

  void add_rows(Quantity& quantity, std::int64_t number, const Recipe& moved) {
    std::string set;
    const auto say = [&](std::string_view key, std::int64_t from, std::int64_t to) {
      const bool settled = asked_waves_ != WaveFreeBatch::off && to > 0;  // which the person's recipe does not say
      if (from != to || settled) set += concat(set.empty() ? "" : " ", "--set ", key, to);
    };
    say(kSourceKey, recipe_.batch.source_tokens, moved.batch.source_tokens);
    say(kTargetKey, recipe_.batch.target_tokens, moved.batch.target_tokens);
    if (asked_waves_ != WaveFreeBatch::off) set += " --set guidelines.wave_free_batch=off";
    add(
        quantity, number, [&](Recipe& changed) { changed = moved; }, std::move(set));
  }

  Quantity d_ff() {
    Quantity quantity{
        .name = "d_ff",
        .from = recipe_.model.d_ff,
        .part = "ffn",
        .part_seconds = [](const StepPlan& step) { return step.seconds_of_layer("ffn.up") + step.seconds_of_layer("ffn.down"); },
        .section = "Matrix Multiplication Background, 2.2 and 3",
        .remark = remark_on_rows(recipe_.model.d_ff, precision_table(recipe_.run.precision).activation),
        .layers = {"ffn.up", "ffn.down"}};
    for (const std::int64_t number : neighbours(quantity.from, {8, 64, 128, 256})) {
      add(
          quantity, number, [&](Recipe& changed) { changed.model.d_ff = number; }, concat("--set model.d_ff=", number));
    }
    return quantity;
  }

  Quantity heads() {
    Quantity quantity{
        .name = "heads", .from = recipe_.model.heads, .part = "attention", .part_seconds = attention_seconds, .section = kAlignmentSection};
    const std::int64_t d_model = recipe_.model.d_model;
    for (std::int64_t number = 1; number <= std::min<std::int64_t>(d_model, 1024); ++number) {
      const std::int64_t width = d_model / number;
      const bool usual = d_model % number == 0 && width % 8 == 0 && width >= 32 && width <= 256;
      if (!usual || number == quantity.from) continue;
      add(
          quantity, number, [&](Recipe& changed) { changed.model.heads = number; }, concat("--set model.heads=", number));
      quantity.candidates.back().section = section_of_heads(d_model / quantity.from, width);
    }
    return quantity;
  }

  // Whether other heads would be of another width, or share other keys.
  bool has_heads_of_its_own() const { return recipe_.model.head_size > 0 || recipe_.model.kv_heads > 0; }

  // Columns of a head, as they are and as they might be.
  std::string_view section_of_heads(std::int64_t from, std::int64_t to) const {
    constexpr std::int64_t kAligned = 16;  // bytes
    const std::int64_t element = size_of(precision_table(recipe_.run.precision).activation);
    const auto on_tensor_cores = [&](std::int64_t width) { return element == 2 && (width == 32 || width == 64 || width == 128); };
    if (from * element % kAligned != 0) return kAlignmentSection;
    return on_tensor_cores(to) && !on_tensor_cores(from) ? kTensorCoreHeads : kOtherHeads;
  }

  Quantity sequence() {
    Quantity quantity{
        .name = "sequence", .from = recipe_.batch.sequence, .part = "attention", .part_seconds = attention_seconds, .section = kFewerKeys};
    for (const std::int64_t number : neighbours(quantity.from, {8, 64, 128})) {
      const std::int64_t rows = recipe_.batch.source_tokens > 0 ? std::min(recipe_.batch.source_tokens, recipe_.batch.target_tokens)
                                                                : recipe_.batch.target_tokens;
      if (number > std::min(rows, recipe_.model.max_positions)) continue;
      if (number < quantity.from && packs_pairs(recipe_.data)) continue;  // pairs that are longer would be left out
      add(
          quantity, number, [&](Recipe& changed) { changed.batch.sequence = number; }, concat("--set batch.sequence=", number));
      quantity.candidates.back().section = number < quantity.from ? kFewerKeys : kLongerSequences;
    }
    return quantity;
  }

  bool fits(const StepPlan& step) const {
    return device_.backend != Backend::cuda || step.bytes <= device_.memory_bytes - reserved_bytes(Backend::cuda);
  }

  // Estimates are good enough elsewhere.
  bool near_the_limit(const StepPlan& step) const {
    const auto room = static_cast<double>(device_.memory_bytes - reserved_bytes(Backend::cuda));
    return device_.backend == Backend::cuda && std::abs(static_cast<double>(step.bytes) / room - 1.0) < kNearLimit;
  }

  std::int64_t exact_bytes(const Recipe& recipe, const StepPlan& step) const {
    return is_deep(recipe.model) ? trace_step(resolve(recipe), device_).bytes() : step.bytes;
  }

  SizeEffects effects_in(const StepPlan& step, const Quantity& quantity, std::int64_t size) const {
    std::vector<GemmLine> lines;
    for (const GemmLine& line : step.gemms) {
      if (std::ranges::any_of(quantity.layers, [&](std::string_view layer) { return named_by(line.layer, layer); })) lines.push_back(line);
    }
    return effects_of(size, lines, device_);
  }

  struct Tried {
    Advice advice;
    double rate_gain = 0.0;  // of the step's FLOPs a second
    const Candidate* candidate = nullptr;
    StepPlan step;
  };

  // All that was tried, and what the recipe has.
  std::vector<TriedSize> sizes_of(const Quantity& quantity, const std::vector<Tried>& tried) const {
    if (quantity.layers.empty()) return {};
    std::vector<TriedSize> sizes = {
        {.size = quantity.from, .part_s = quantity.part_seconds(step_), .effects = effects_in(step_, quantity, quantity.from)}};
    for (const Tried& one : tried) {
      const std::int64_t size = one.advice.to;
      if (std::ranges::any_of(sizes, [&](const TriedSize& known) { return known.size == size; })) continue;
      sizes.push_back({.size = size,
                       .part_s = quantity.part_seconds(one.step),
                       .step_gain = one.advice.step_gain,
                       .rate_gain = one.rate_gain,
                       .effects = effects_in(one.step, quantity, size)});
    }
    std::ranges::sort(sizes, {}, &TriedSize::size);
    return sizes;
  }

  std::vector<Advice> advice_of(const Quantity& quantity) {
    const std::vector<Tried> tried = tried_of(quantity);
    const std::vector<TriedSize> sizes = sizes_of(quantity, tried);
    std::vector<Advice> given = chosen_of(quantity, tried);
    for (Advice& advice : given) advice.tried = sizes;
    return given;
  }

  // The nearest number first; of two settings with one number the better one.
  std::vector<Tried> tried_of(const Quantity& quantity) {
    std::vector<Tried> tried;
    for (const Candidate& candidate : quantity.candidates) {
      const ResolvedRecipe resolved = resolved_by(counter_, candidate.recipe);
      StepPlan step = plan_by_layers(resolved, device_);
      if (near_the_limit(step)) step.bytes = exact_bytes(candidate.recipe, step);
      if (fits(step_) && !fits(step)) continue;
      const RealTokens tokens = counter_(resolved);
      const double part = quantity.part_seconds(step_);
      const double part_after = quantity.part_seconds(step) / growth(tokens, worth_.tokens);
      const auto rate = [](const StepPlan& plan) { return static_cast<double>(plan.matrix_flops) / plan.predicted_s(); };
      const double gain = 1.0 - relative_time({.seconds = step.predicted_s(), .tokens = tokens}, worth_);
      const double rate_gain = rate(step) / rate(step_) - 1.0;
      const bool gemms_gain = step.gemm_s / growth(tokens, worth_.tokens) <= (1.0 - kMinGain) * step_.gemm_s;
      tried.push_back({.advice = {.quantity = quantity.name,
                                  .from = quantity.from,
                                  .to = candidate.value,
                                  .advised = gain >= kMinGain && rate_gain >= kMinGain,
                                  .part_gain = part > 0.0 ? 1.0 - part_after / part : 0.0,
                                  .step_gain = gain,
                                  .part = quantity.part,
                                  .cost_rows = step.rows - step_.rows,
                                  .cost_bytes = step.bytes - step_.bytes,
                                  .cost_parameters = step.parameters - step_.parameters,
                                  .set = candidate.set,
                                  .section = gemms_gain || !quantity.of_rows   ? candidate.section
                                             : candidate.value > quantity.from ? kSharedUpdate
                                                                               : kFewerRows,
                                  .remark = quantity.remark},
                       .rate_gain = rate_gain,
                       .candidate = &candidate,
                       .step = step});
    }
    const auto distance = [](const Tried& one) { return std::abs(one.advice.to - one.advice.from); };
    std::sort(tried.begin(), tried.end(), [&](const Tried& a, const Tried& b) {
      return std::pair(distance(a), -a.advice.step_gain) < std::pair(distance(b), -b.advice.step_gain);
    });
    return tried;
  }

  std::vector<Advice> chosen_of(const Quantity& quantity, const std::vector<Tried>& tried) const {
    std::vector<Advice> given;
    for (const bool up : {false, true}) {
      const auto counts = [&](const Tried& one) { return one.advice.advised && (one.advice.to > one.advice.from) == up; };
      double best = 0.0;
      for (const Tried& one : tried) best = std::max(best, counts(one) ? one.rate_gain : 0.0);
      const auto nearest =
          std::find_if(tried.begin(), tried.end(), [&](const Tried& one) { return counts(one) && one.rate_gain >= kNearlyBest * best; });
      if (nearest == tried.end()) continue;
      given.push_back(nearest->advice);
      given.back().cost_bytes = exact_bytes(nearest->candidate->recipe, nearest->step) - step_.bytes;
    }
    if (!given.empty()) return given;
    // None: the best number by the lesser of its two gains, if it has both.
    Tried none{.advice = {.quantity = quantity.name,
                          .from = quantity.from,
                          .to = quantity.from,
                          .part = quantity.part,
                          .section = quantity.section,
                          .remark = quantity.remark},
               .step = {}};
    const auto lesser = [](const Tried& one) { return std::min(one.advice.step_gain, one.rate_gain); };
    for (const Tried& one : tried) {
      if (lesser(one) > lesser(none)) none = one;
    }
    none.advice.step_gain = lesser(none);
    if (none.candidate != nullptr) none.advice.cost_bytes = exact_bytes(none.candidate->recipe, none.step) - step_.bytes;
    return {none.advice};
  }

  Recipe recipe_;
  WaveFreeBatch asked_waves_;
  const DeviceInfo& device_;
  RealTokenCounter& counter_;
  ResolvedRecipe resolved_;
  StepPlan step_;
  StepWorth worth_;
};

}  // namespace

std::vector<Advice> advise(const Recipe& recipe, const DeviceInfo& device, RealTokenCounter& tokens, WaveFreeBatch asked) {
  return Adviser(recipe, device, tokens, asked).advise();
}

std::vector<Advice> advise(const Recipe& recipe, const DeviceInfo& device) {
  RealTokenCounter tokens(recipe);
  return advise(recipe, device, tokens);
}

}  // namespace tilewave

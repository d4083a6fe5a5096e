// Ratios are by framework/measure's rule: ours / peer in speed, the best of each side after screening, medians of interleaved rounds.
#include "app/bench/gemm_bench.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "app/bench/bench_operands.h"
#include "app/bench/gemm_candidates.h"
#include "app/text/table.h"
#include "app/text/units.h"
#include "framework/io/json_lines.h"
#include "framework/measure/calibration.h"
#include "framework/measure/interleave.h"
#include "kernels/core/error.h"
#include "kernels/gemm/catalog.h"
#include "kernels/gemm/gemm.h"
#include "models/planning/plan.h"

namespace tilewave {
namespace {

constexpr std::size_t kBestOfModel = 8;  // of a drawn suite's candidates, and as many others
constexpr double kSlowest = 4.0;         // a plan that the model puts further behind is not measured, unless its kernel is asked for

// A mean of ratios, and the least of them.
struct Ratios {
  double logarithms = 0.0, least = HUGE_VAL;
  int count = 0, without_peer = 0;
  std::string worst;

  void add(double ratio, const std::string& name) {
    logarithms += std::log(ratio);
    ++count;
    if (ratio < least) {
      least = ratio;
      worst = name;
    }
  }
  double mean() const { return std::exp(logarithms / count); }
};

// Seconds that a bias gradient adds to a wgrad, for us and for the peer.
struct Added {
  double ours_s = 0.0, peer_s = 0.0;
};

struct Measured {
  const GemmItem& item;
  const OurSide& ours;
  GemmCase peer;
  std::string peer_absent;
  Comparison timings;
  Added added;
};

// What we run for it.
std::vector<GemmCase> launches_of(const GemmCase& asked) {
  if (asked.form != GemmForm::dgrad_gelu_bias) return {asked};
  const InParts parts = in_parts(asked);
  return {parts.dgrad, parts.wgrad, parts.wgrad_bias};
}

class Measurement {
 public:
  Measurement(const Queue& queue, DeviceInfo device, const GemmBench& options)
      : device_(std::move(device)),
        options_(options),
        candidates_(queue, device_, options.against, parse_gemm_types(options.dtype)),
        interleave_(interleave_of(options, device_.backend)),
        ratios_(options.suite.claims.size()) {
    for (const GemmItem& item : options_.suite.items) {
      for (const GemmCase& launch : launches_of(item.ours)) {
        // Throws what is wrong before anything is measured.
        choose(problem_of(launch, candidates_.types()), device_, {.forced = options_.kernel});
      }
      candidates_.check_peer(item.ours);
    }
  }

  int run_all() {
    // Finalists of both sides, and what screening and filling memory take; a bias gradient's cost is five comparisons more.
    double comparisons = 0.0;
    for (const GemmItem& item : options_.suite.items) {
      comparisons += item.ours.form == GemmForm::dgrad_gelu_bias && item.peer == PeerLaunches::one ? 6.0 : 1.0;
    }
    const double seconds = comparisons * (7.0 * options_.rounds * (options_.block_s + options_.settle_s) + 1.5);
    std::cerr << concat(options_.suite.items.size(), " comparisons, about ", std::lround(seconds), " s\n");
    for (const GemmItem& item : options_.suite.items) run_one(item);
    options_.json ? print_json_claims() : print_all();
    return 0;
  }

 private:
  OurSide side_of(const GemmCase& asked) {
    OurSide side = candidates_.ours(asked, options_.kernel, options_.kernel.empty() ? kSlowest : HUGE_VAL);
    if (options_.seed) side.keep(kBestOfModel, random_);
    return side;
  }

  Comparison compare_warm(const std::vector<Candidate>& ours, const std::vector<Candidate>& peers) {
    Comparison result = compare(ours, peers, interleave_);
    interleave_.load_s = 0.0;  // the process is warm now
    return result;
  }

  // Measured once a layer.
  Added bias_gradient_cost(const InParts& parts) {
    const auto [known, is_new] = bias_gradient_costs_.try_emplace(parts.wgrad.layer.text());
    if (!is_new) return known->second;
    const auto fastest = [&](std::vector<Candidate> candidates) {
      const std::string name = compare_warm(candidates, {}).ours.front().name;
      Candidate best = *std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& one) { return one.name == name; });
      best.always_final = true;
      return best;
    };
    const auto both = [&](auto&& side) {
      std::vector<Candidate> result;
      for (const GemmCase& one : {parts.wgrad, parts.wgrad_bias}) {
        result.push_back(fastest(side(one)));
        result.back().name = name_of(one.form);
      }
      return result;
    };
    const auto peers = [&](const GemmCase& one) {
      PeerSide side = candidates_.peers(one);
      TW_CHECK(side.absent.empty(), options_.against, " on ", name_of(one.form), " of ", one.layer.text(), ": ", side.absent);
      return std::move(side.candidates);
    };
    const Comparison result = compare_warm(both([&](const GemmCase& one) { return side_of(one).candidates; }),
                                           candidates_.has_peer() ? both(peers) : std::vector<Candidate>());
    const auto added = [](const std::vector<Timing>& timings) {
      if (timings.empty()) return 0.0;
      const bool first_is_plain = timings[0].name == name_of(GemmForm::wgrad);
      return std::max(0.0, timings[first_is_plain ? 1 : 0].median_s - timings[first_is_plain ? 0 : 1].median_s);
    };
    return known->second = {.ours_s = added(result.ours), .peer_s = added(result.peers)};
  }

  void run_one(const GemmItem& item) {
    const bool in_parts_too = item.peer == PeerLaunches::in_parts;
    if (!item.other && !candidates_.has_peer() && (options_.suite.claims[item.claim].mean > 0.0 || in_parts_too)) {
      return;  // a claim against a library, and none is asked for
    }
    const GemmCase own = launches_of(item.ours).front();
    const OurSide ours = side_of(own);
    Measured measured = {.item = item,
                         .ours = ours,
                         .peer = item.other.value_or(in_parts_too ? own : item.ours),
                         .peer_absent = {},
                         .timings = {},
                         .added = {}};
    PeerSide peers;
    if (item.other) {
      peers.candidates = side_of(*item.other).candidates;
    } else if (candidates_.has_peer()) {
      peers = candidates_.peers(measured.peer);
    }
    measured.peer_absent = peers.absent;
    measured.timings = compare_warm(ours.candidates, peers.candidates);
    if (item.ours.form == GemmForm::dgrad_gelu_bias) measured.added = bias_gradient_cost(in_parts(item.ours));
    if (!in_parts_too) measured.added.peer_s = 0.0;
    print(measured);
  }

  // What one comparison came to.
  struct Result {
    std::string layer, form, chosen;  // chosen: by the model, as its plan is called
    std::string kernel;               // that was fastest
    double seconds = 0.0, flops_per_s = 0.0, roofline_s = 0.0, predicted_s = 0.0, chosen_s = 0.0;
    double chosen_speed = 1.0;                                 // of the fastest's
    double peer_s = 0.0, peer_flops_per_s = 0.0, ratio = 0.0;  // 0: no peer
    bool against_itself = false;                               // the peer is another form of ours
    std::string remark;
  };

  Result result_of(const Measured& measured) {
    const auto& [item, ours, peer_case, peer_absent, timings, added] = measured;
    const Timing& best = timings.ours.front();
    const std::string chosen_name = name_of(ours.chosen);
    const Timing& chosen = *std::ranges::find(timings.ours, chosen_name, &Timing::name);
    const GemmProblem& problem = ours.problem;
    Result result = {
        .layer = item.ours.layer.text(),
        .form = concat(name_of(item.ours.form), item.ours.pitch == PitchPolicy::packed ? ", packed" : ""),
        .chosen = chosen_name,
        .kernel = best.name,
        .seconds = best.median_s + added.ours_s,
        .roofline_s = floor_s({.flops = problem.flops(), .bytes = problem.bytes()}, device_, problem.operand_dtype, problem.math),
        .predicted_s = ours.plans.at(best.name).predicted_s,
        .chosen_s = chosen.median_s,
        .chosen_speed = best.median_s / chosen.median_s,
        .against_itself = item.other.has_value(),
        .remark = item.peer == PeerLaunches::in_parts ? "peer in parts" : ""};
    result.flops_per_s = static_cast<double>(problem.flops()) / result.seconds;
    slower_.add(chosen.median_s / best.median_s, result.layer);
    prediction_.add(std::exp(std::abs(std::log(ours.chosen.predicted_s / chosen.median_s))), result.layer);
    errors_.push_back(std::abs(ours.chosen.predicted_s / chosen.median_s - 1.0));
    if (result.ratio > 0.0 && result.ratio < options_.suite.claims[item.claim].least)
      slow_.push_back(concat(result.form, " of ", result.layer, ", ", number_text(result.ratio, "%.3f")));
    if (!timings.peers.empty()) {
      result.peer_s = timings.peers.front().median_s + added.peer_s;
      result.peer_flops_per_s = static_cast<double>(problem_of(peer_case, candidates_.types()).flops()) / result.peer_s;
      result.ratio = result.flops_per_s / result.peer_flops_per_s;
      ratios_[item.claim].add(result.ratio, result.layer);
    }
    if (!peer_absent.empty()) {
      ++ratios_[item.claim].without_peer;
      result.remark = concat("no ", options_.against, ": ", peer_absent);
    }
    return result;
  }

  void print(const Measured& measured) {
    const Result result = result_of(measured);
    if (options_.json) {
      print_json(measured, result);
      return;
    }
    const std::string beside = result.ratio > 0.0 ? concat(", ", number_text(result.ratio, "%.3f"), " of the peer's speed") : std::string();
    std::cerr << concat(result.form, " of ", result.layer, ": ", time_text(result.seconds), ", ", flops_text(result.flops_per_s), beside,
                        "\n");
    results_.push_back(result);
  }

  void print_json(const Measured& measured, const Result& result) const {
    const auto& [item, ours, peer_case, peer_absent, timings, added] = measured;
    const Timing& best = timings.ours.front();
    const GemmPlan& plan = ours.plans.at(best.name);
    const GemmProblem& p = ours.problem;
    JsonObject object;
    object.add("device", device_.name).add("claim", options_.suite.claims[item.claim].name).add("layer", result.layer);
    object.add("form", name_of(item.ours.form)).add("pitch", item.ours.pitch == PitchPolicy::packed ? "packed" : "aligned");
    object.add("rounds", options_.rounds).add("block_ms", options_.block_s * 1e3).add("settle_ms", options_.settle_s * 1e3);
    object.add("dtype", options_.dtype).add("m", p.m).add("n", p.n).add("k", p.k).add("kernel", name_of(plan.composition));
    object.add("tile", concat(plan.tile.m, "x", plan.tile.n)).add("split", plan.split).add("time_us", best.median_s * 1e6);
    object.add("floor_us", result.roofline_s > 0.0 ? result.roofline_s * 1e6 : NAN);
    object.add("lower_quartile_us", best.lower_quartile_s * 1e6).add("upper_quartile_us", best.upper_quartile_s * 1e6);
    object.add("bias_gradient_us", added.ours_s * 1e6)
        .add("tflops", result.flops_per_s * 1e-12)
        .add("predicted_us", plan.predicted_s * 1e6);
    object.add("chosen", result.chosen).add("chosen_us", result.chosen_s * 1e6).add("chosen_predicted_us", ours.chosen.predicted_s * 1e6);
    if (result.ratio > 0.0) {
      const Timing& peer = timings.peers.front();
      object.add("peer", peer.name).add("peer_form", name_of(peer_case.form)).add("peer_us", peer.median_s * 1e6);
      object.add("peer_bias_gradient_us", added.peer_s * 1e6);
      object.add("peer_tflops", result.peer_flops_per_s * 1e-12).add("peer_lower_quartile_us", peer.lower_quartile_s * 1e6);
      object.add("peer_upper_quartile_us", peer.upper_quartile_s * 1e6).add("ratio", result.ratio);
    }
    if (!peer_absent.empty()) object.add("peer_absent", peer_absent);
    if (options_.seed) object.add("candidates", std::span<const JsonObject>(candidates_of(measured)));
    std::cout << object.text() << std::endl;
  }

  // All of ours that were measured, by what screening saw.
  static std::vector<JsonObject> candidates_of(const Measured& measured) {
    std::vector<JsonObject> all;
    for (const auto& [name, seconds] : measured.timings.screened_s) {
      all.push_back(
          JsonObject().add("plan", name).add("us", seconds * 1e6).add("predicted_us", measured.ours.plans.at(name).predicted_s * 1e6));
    }
    return all;
  }

  // The answer, then what it is made of.
  void print_all() const {
    std::cout << wrapped(concat(device_text(device_), ", ", options_.dtype, ": ", answer_text()), options_.page) << '\n'
              << wrapped(model_text(), options_.page) << "\n\n";
    const Table claims = claims_table();
    if (!claims.empty()) {
      claims.print(std::cout, options_.page);
      std::cout << '\n';
    }
    results_table().print(std::cout, options_.page);
  }

  std::string answer_text() const {
    Ratios all;
    double least = HUGE_VAL, most = 0.0;
    for (const Result& result : results_) {
      least = std::min(least, result.flops_per_s);
      most = std::max(most, result.flops_per_s);
      if (result.ratio > 0.0 && !result.against_itself) all.add(result.ratio, result.layer);
    }
    if (results_.empty()) return "nothing was measured";
    const std::string rates = least < most ? concat(flops_text(least), " to ", flops_text(most)) : flops_text(most);
    if (all.count == 0) return rates;
    return concat(number_text(all.mean(), "%.3f"), " of the peer's speed in the geometric mean of ", all.count, ", at least ",
                  number_text(all.least, "%.3f"), " (", all.worst, "); ", rates);
  }

  std::string model_text() const {
    if (slower_.count == 0) return "";
    return concat("the cost model's choice takes ", number_text(slower_.mean(), "%.3f"),
                  " times the fastest's time, and its prediction is off by a factor of ", number_text(prediction_.mean(), "%.3f"),
                  " (geometric means over ", slower_.count, "); the prediction's mean error is ", percent_text(mean_error(), 1),
                  ", its 95th percentile ", percent_text(quantile(errors_, 0.95), 1),
                  slow_.empty() ? "" : "; below what none should be under: ", list_text(slow_));
  }

  double mean_error() const { return std::accumulate(errors_.begin(), errors_.end(), 0.0) / static_cast<double>(errors_.size()); }
  static std::string list_text(const std::vector<std::string>& some) {
    std::string text;
    for (const std::string& one : some) text += concat(text.empty() ? "" : "; ", one);
    return text;
  }

  Table claims_table() const {
    Table table({{.heading = "ratio in speed", .align = Align::left},
                 {.heading = "of"},
                 {.heading = "geometric mean"},
                 {.heading = "target", .rank = 1},
                 {.heading = "least"},
                 {.heading = "its target", .rank = 2},
                 {.heading = "at", .align = Align::left, .rank = 3}});
    const auto target = [](double value) { return value > 0.0 ? concat(">= ", value) : std::string(); };
    for (std::size_t i = 0; i < ratios_.size(); ++i) {
      const Ratios& ratios = ratios_[i];
      const GemmClaim& claim = options_.suite.claims[i];
      if (ratios.count == 0 && ratios.without_peer == 0) continue;
      const std::string absent = ratios.without_peer > 0 ? concat(" (", ratios.without_peer, " without a peer)") : std::string();
      const bool any = ratios.count > 0;
      table.add({claim.name + absent, count_text(ratios.count), any ? number_text(ratios.mean(), "%.3f") : "", target(claim.mean),
                 any ? number_text(ratios.least, "%.3f") : "", target(claim.least), ratios.worst});
    }
    return table;
  }

  Table results_table() const {
    double fastest = 0.0;
    for (const Result& result : results_) fastest = std::max(fastest, result.flops_per_s);
    const RateUnit rates = rate_unit(fastest);
    Table table({{.heading = "layer", .align = Align::left},
                 {.heading = "form", .align = Align::left},
                 {.heading = "kernel/tile", .align = Align::left},
                 {.heading = "time"},
                 {.heading = "roofline time", .rank = 4},
                 {.heading = rates.unit},
                 {.heading = "predicted time", .rank = 3},
                 {.heading = "chosen by the cost model", .align = Align::left, .rank = 6},
                 {.heading = "peer time", .rank = 2},
                 {.heading = concat("peer ", rates.unit), .rank = 5},
                 {.heading = "ratio", .rank = 1}});
    for (const Result& one : results_) {
      const bool compared = one.ratio > 0.0;
      const std::string chosen = one.chosen == one.kernel ? "the same" : concat(one.chosen, ' ', percent_text(one.chosen_speed, 0));
      table.add({one.layer, one.form, one.kernel, time_text(one.seconds), time_text(one.roofline_s),
                 number_text(one.flops_per_s * rates.scale, "%.4g"), time_text(one.predicted_s), chosen,
                 compared ? time_text(one.peer_s) : "", compared ? number_text(one.peer_flops_per_s * rates.scale, "%.4g") : "",
                 compared ? number_text(one.ratio, "%.3f") : ""});
      if (!one.remark.empty()) table.remark(one.remark);
    }
    return table;
  }

  void print_json_claims() const {
    for (std::size_t i = 0; i < ratios_.size(); ++i) {
      const Ratios& ratios = ratios_[i];
      const GemmClaim& claim = options_.suite.claims[i];
      if (ratios.count == 0 && ratios.without_peer == 0) continue;
      JsonObject object;
      object.add("claim", claim.name).add("comparisons", ratios.count).add("without_peer", ratios.without_peer);
      if (ratios.count > 0) object.add("geometric_mean", ratios.mean()).add("least", ratios.least).add("least_at", ratios.worst);
      if (claim.mean > 0.0) object.add("target_mean", claim.mean);
      if (claim.least > 0.0) object.add("target_least", claim.least);
      std::cout << object.text() << std::endl;
    }
    if (slower_.count == 0) return;
    JsonObject object;
    if (options_.seed) object.add("seed", *options_.seed);
    object.add("chosen_time_fraction", slower_.mean()).add("prediction_error_factor", prediction_.mean());
    object.add("prediction_error_mean", mean_error()).add("prediction_error_p95", quantile(errors_, 0.95));
    std::cout << object.text() << std::endl;
  }

  DeviceInfo device_;
  const GemmBench& options_;
  GemmCandidates candidates_;
  InterleaveOptions interleave_;
  std::vector<Result> results_;
  std::vector<Ratios> ratios_;                        // by claim
  std::map<std::string, Added> bias_gradient_costs_;  // by layer
  Ratios slower_, prediction_;
  std::vector<double> errors_;     // of the choice's prediction, as parts of what was measured
  std::vector<std::string> slow_;  // under their claim's least
  std::mt19937_64 random_{options_.seed.value_or(0)};
};

}  // namespace

InterleaveOptions interleave_of(const GemmBench& options, Backend backend) {
  return {.load_s = load_s_of(backend),
          .block_s = options.block_s,
          .screening_block_s = std::min(0.003, options.block_s),
          .rounds = options.rounds,
          .settle_s = options.settle_s};
}

int bench_gemm(const Queue& queue, DeviceInfo device, const GemmBench& options) {
  if (device.backend == Backend::cpu) return Measurement(queue, device, options).run_all();
  if (options.calibrate) {
    const Calibration calibration = fit_cost_model(measure_for_calibration(queue, device, [] {}), device);
    device.cost_model = std::make_shared<CostModel>(calibration.model);
    std::cerr << concat("calibrated on ", calibration.points, " other GEMMs: predictions are off by ",
                        std::lround(1000.0 * calibration.error_after) / 10.0, " % there\n");
  }
  std::cerr << concat("predicted times: ", source_of(cost_model_of(device)), "\n");
  return Measurement(queue, device, options).run_all();
}

}  // namespace tilewave

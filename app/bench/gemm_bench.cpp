// Ratios are by framework/measure's rule: ours / peer in speed, the best of each side after screening, medians of interleaved rounds.
#include "app/bench/gemm_bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <vector>

#include "app/bench/bench_operands.h"
#include "app/bench/gemm_candidates.h"
#include "app/text/gemm_text.h"
#include "framework/io/json_lines.h"
#include "framework/measure/calibration.h"
#include "framework/measure/interleave.h"
#include "kernels/core/error.h"
#include "kernels/gemm/catalog.h"
#include "kernels/gemm/gemm.h"
#include "models/planning/plan.h"

namespace tilewave {
namespace {

constexpr double kSlowest = 4.0;  // a plan that the model puts further behind is not measured, unless its row is asked for

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
        rates_(rate_unit(device_.backend)),
        interleave_(interleave_of(options)),
        ratios_(options.suite.claims.size()) {
    for (const GemmItem& item : options_.suite.items) {
      for (const GemmCase& launch : launches_of(item.ours)) {
        // Throws what is wrong before anything is measured.
        choose(problem_of(launch, candidates_.types()), device_, {.forced = options_.row});
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
    if (!options_.json) {
      std::printf("# %s, %s\n%-22s %-17s %-34s %9s %8s %8s %9s", device_.name.c_str(), options_.dtype.c_str(), "layer", "form", "row/tile",
                  "time us", "floor us", rates_.unit, "predicted");
      std::printf(" %-34s %9s %8s %6s\n", "chosen by the model", "peer us", rates_.unit, "ratio");
    }
    for (const GemmItem& item : options_.suite.items) run_one(item);
    print_claims();
    print_model();
    return 0;
  }

 private:
  OurSide side_of(const GemmCase& asked) { return candidates_.ours(asked, options_.row, options_.row.empty() ? kSlowest : HUGE_VAL); }

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

  void print(const Measured& measured) {
    const auto& [item, ours, peer_case, peer_absent, result, added] = measured;
    const Timing& best = result.ours.front();
    const GemmPlan& plan = ours.plans.at(best.name);
    const std::string layer = item.ours.layer.text(), chosen_name = name_of(ours.chosen);
    const std::string form = concat(name_of(item.ours.form), item.ours.pitch == PitchPolicy::packed ? ", packed" : "");
    const Timing& chosen =
        *std::find_if(result.ours.begin(), result.ours.end(), [&](const Timing& timing) { return timing.name == chosen_name; });
    const double seconds = best.median_s + added.ours_s, rate = static_cast<double>(ours.problem.flops()) / seconds;
    slower_.add(chosen.median_s / best.median_s, layer);
    prediction_.add(std::exp(std::abs(std::log(ours.chosen.predicted_s / chosen.median_s))), layer);
    const double floor =
        floor_s({.flops = ours.problem.flops(), .bytes = ours.problem.bytes()}, device_, ours.problem.operand_dtype, ours.problem.math);
    const bool compared = !result.peers.empty();
    const double peer_s = compared ? result.peers.front().median_s + added.peer_s : 0.0;
    const double peer_rate = compared ? static_cast<double>(problem_of(peer_case, candidates_.types()).flops()) / peer_s : 0.0;
    const double ratio = compared ? rate / peer_rate : 0.0;
    if (compared) ratios_[item.claim].add(ratio, layer);
    if (!peer_absent.empty()) ++ratios_[item.claim].without_peer;
    if (options_.json) {
      const GemmProblem& p = ours.problem;
      JsonObject object;
      object.add("device", device_.name).add("claim", options_.suite.claims[item.claim].name).add("layer", layer);
      object.add("form", name_of(item.ours.form)).add("pitch", item.ours.pitch == PitchPolicy::packed ? "packed" : "aligned");
      object.add("rounds", options_.rounds).add("block_ms", options_.block_s * 1e3).add("settle_ms", options_.settle_s * 1e3);
      object.add("dtype", options_.dtype).add("m", p.m).add("n", p.n).add("k", p.k).add("row", plan.row);
      object.add("tile", concat(plan.tile.m, "x", plan.tile.n)).add("split", plan.split).add("time_us", best.median_s * 1e6);
      object.add("floor_us", floor > 0.0 ? floor * 1e6 : NAN);
      object.add("lower_quartile_us", best.lower_quartile_s * 1e6).add("upper_quartile_us", best.upper_quartile_s * 1e6);
      object.add("bias_gradient_us", added.ours_s * 1e6).add("tflops", rate * 1e-12).add("predicted_us", plan.predicted_s * 1e6);
      object.add("chosen", chosen_name).add("chosen_us", chosen.median_s * 1e6).add("chosen_predicted_us", ours.chosen.predicted_s * 1e6);
      if (compared) {
        const Timing& peer = result.peers.front();
        object.add("peer", peer.name).add("peer_form", name_of(peer_case.form)).add("peer_us", peer.median_s * 1e6);
        object.add("peer_bias_gradient_us", added.peer_s * 1e6);
        object.add("peer_tflops", peer_rate * 1e-12).add("peer_lower_quartile_us", peer.lower_quartile_s * 1e6);
        object.add("peer_upper_quartile_us", peer.upper_quartile_s * 1e6).add("ratio", ratio);
      }
      if (!peer_absent.empty()) object.add("peer_absent", peer_absent);
      std::cout << object.text() << std::endl;
      return;
    }
    std::printf("%-22s %-17s %-34s %9.1f %8s %8.1f %9.1f %-34s", layer.c_str(), form.c_str(), best.name.c_str(), seconds * 1e6,
                floor_text(floor).c_str(), rate * rates_.scale, plan.predicted_s * 1e6,
                chosen_name == best.name ? "the same"
                                         : concat(chosen_name, " ", std::lround(100.0 * best.median_s / chosen.median_s), " %").c_str());
    if (compared) std::printf(" %9.1f %8.1f %6.3f", peer_s * 1e6, peer_rate * rates_.scale, ratio);
    if (compared && item.peer == PeerLaunches::in_parts) std::printf(" in parts");
    if (!peer_absent.empty()) std::printf(" no %s: %s", options_.against.c_str(), peer_absent.c_str());
    std::printf("\n");
    std::fflush(stdout);
  }

  void print_claims() const {
    bool titled = options_.json;
    for (std::size_t i = 0; i < ratios_.size(); ++i) {
      const Ratios& ratios = ratios_[i];
      const GemmClaim& claim = options_.suite.claims[i];
      if (ratios.count == 0 && ratios.without_peer == 0) continue;
      if (options_.json) {
        JsonObject object;
        object.add("claim", claim.name).add("comparisons", ratios.count).add("without_peer", ratios.without_peer);
        if (ratios.count > 0) object.add("geometric_mean", ratios.mean()).add("least", ratios.least).add("least_at", ratios.worst);
        if (claim.mean > 0.0) object.add("target_mean", claim.mean);
        if (claim.least > 0.0) object.add("target_least", claim.least);
        std::cout << object.text() << std::endl;
        continue;
      }
      if (!std::exchange(titled, true)) {
        std::printf("\n%-52s %5s %9s %7s %9s %7s  %s\n", "ratio in speed", "of", "geo. mean", "target", "least", "target", "at");
      }
      const auto target = [](double value) { return value > 0.0 ? concat(">= ", value) : std::string(); };
      const std::string absent = ratios.without_peer > 0 ? concat(" (", ratios.without_peer, " without a peer)") : std::string();
      if (ratios.count == 0) {
        std::printf("%-52s %5d%s\n", claim.name.c_str(), ratios.count, absent.c_str());
        continue;
      }
      std::printf("%-52s %5d %9.3f %7s %9.3f %7s  %s%s\n", claim.name.c_str(), ratios.count, ratios.mean(), target(claim.mean).c_str(),
                  ratios.least, target(claim.least).c_str(), ratios.worst.c_str(), absent.c_str());
    }
  }

  void print_model() const {
    if (slower_.count == 0) return;
    if (options_.json) {
      std::cout << JsonObject().add("chosen_time_fraction", slower_.mean()).add("prediction_error_factor", prediction_.mean()).text()
                << std::endl;
      return;
    }
    std::printf(
        "the model's choice takes %.3f times the best's time, and its prediction is off by a factor of %.3f (geometric means over %d)\n",
        slower_.mean(), prediction_.mean(), slower_.count);
  }

  DeviceInfo device_;
  const GemmBench& options_;
  GemmCandidates candidates_;
  RateUnit rates_;  // JSON has TFLOP/s
  InterleaveOptions interleave_;
  std::vector<Ratios> ratios_;                        // by claim
  std::map<std::string, Added> bias_gradient_costs_;  // by layer
  Ratios slower_, prediction_;
};

}  // namespace

InterleaveOptions interleave_of(const GemmBench& options) {
  return {.block_s = options.block_s,
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

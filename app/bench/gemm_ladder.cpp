// A row's plans are screened by themselves; then the best of every row and the peer's take turns.
#include "app/bench/gemm_ladder.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <vector>

#include "app/bench/gemm_candidates.h"
#include "app/text/gemm_text.h"
#include "framework/io/json_lines.h"
#include "kernels/core/device_profiles.h"
#include "kernels/core/error.h"
#include "kernels/gemm/catalog.h"

namespace tilewave {
namespace {

constexpr double kSlowestPlan = 1.5;    // one that the model puts further behind its row's best is not measured
constexpr double kSlowestKernel = 8.0;  // one further behind the fastest row takes no part in the rounds: its one block has to do

struct Rung {
  std::string row, refusal;  // why it has no best plan
  GemmPlan best;
  Candidate candidate;  // the best plan's
  Timing timing;
  int rounds = 0;
};

bool can_launch(const GemmKernel& row) { return row.backend == Backend::cuda ? row.launch_cuda != nullptr : row.launch_cpu != nullptr; }

class Ladder {
 public:
  Ladder(const Queue& queue, const DeviceInfo& device, const GemmBench& options)
      : device_(device),
        options_(options),
        candidates_(queue, device, options.against, parse_gemm_types(options.dtype)),
        rates_(rate_unit(device.backend)),
        rounds_(interleave_of(options)) {
    for (const GemmItem& item : options.suite.items) {
      TW_CHECK_INPUT(item.ours.form != GemmForm::dgrad_gelu_bias,
                     "--ladder --form dgrad_gelu_bias: our rows do that in two launches; ask for dgrad_gelu, or wgrad_bias.");
      candidates_.check_peer(item.ours);
      choose(problem_of(item.ours, candidates_.types()), device_, {});  // throws what is wrong before anything is measured
    }
  }

  void climb(const GemmCase& asked) {
    std::cerr << concat("measuring every row on ", name_of(asked.form), " of ", asked.layer.text(), "\n");
    const GemmProblem problem = problem_of(asked, candidates_.types());
    std::vector<Rung> rungs;
    for (const GemmKernel* row : gemm_catalog()) {
      if (row->backend != device_.backend || row->reference || !can_launch(*row)) continue;
      if (row == find_gemm_kernel(device_.backend, "naive")) continue;  // the oracle
      rungs.push_back({.row = std::string(row->name), .refusal = row->refuse(problem, device_)});
      if (rungs.back().refusal.empty()) screen(asked, rungs.back());
    }
    const PeerSide peers = candidates_.has_peer() ? candidates_.peers(asked) : PeerSide();
    const Comparison result = compare(finalists_of(rungs), peers.candidates, rounds_);
    for (Rung& rung : rungs) {
      const auto timing = std::ranges::find(result.ours, rung.timing.name, &Timing::name);
      if (!rung.refusal.empty() || timing == result.ours.end()) continue;
      rung.timing = *timing;
      rung.rounds = rounds_.rounds;
    }
    const Timing* const peer = result.peers.empty() ? nullptr : &result.peers.front();
    const auto flops = static_cast<double>(problem.flops());
    const double peak = peak_flops_per_s(device_, problem.operand_dtype, problem.math);
    if (!options_.json) print_heading(asked, peer, peers.absent, flops, peak);
    for (const Rung& rung : rungs) {
      if (options_.json) {
        print_object(asked, rung, peer, flops, peak);
      } else {
        print_line(rung, peer, flops, peak);
      }
    }
    std::fflush(stdout);
  }

 private:
  static std::string percent(double part, double whole) {
    return whole > 0.0 ? concat(std::lround(100.0 * part / whole), " %") : std::string();
  }
  // The row's best plan, and its time.
  void screen(const GemmCase& asked, Rung& rung) {
    const OurSide side = candidates_.ours(asked, rung.row, kSlowestPlan);
    InterleaveOptions once = rounds_;
    once.rounds = 1;
    once.settle_s = 0.0;
    rung.timing = compare(side.candidates, {}, once).ours.front();
    rung.rounds = once.rounds;
    rung.best = side.plans.at(rung.timing.name);
    rung.candidate = *std::ranges::find(side.candidates, rung.timing.name, &Candidate::name);
    rounds_.load_s = 0.0;  // the process is warm now
  }
  static std::vector<Candidate> finalists_of(const std::vector<Rung>& rungs) {
    double fastest_s = HUGE_VAL;
    for (const Rung& rung : rungs) {
      if (rung.refusal.empty()) fastest_s = std::min(fastest_s, rung.timing.median_s);
    }
    std::vector<Candidate> finalists;
    for (const Rung& rung : rungs) {
      if (!rung.refusal.empty() || rung.timing.median_s > kSlowestKernel * fastest_s) continue;
      finalists.push_back(rung.candidate);
      finalists.back().always_final = true;
    }
    return finalists;
  }

  void print_heading(const GemmCase& asked, const Timing* peer, const std::string& absent, double flops, double peak) const {
    std::printf("\n# %s, %s: %s of %s, %s pitch", device_.name.c_str(), options_.dtype.c_str(), std::string(name_of(asked.form)).c_str(),
                asked.layer.text().c_str(), asked.pitch == PitchPolicy::packed ? "packed" : "aligned");
    if (peak > 0.0) std::printf("; the peak is %.1f %s", peak * rates_.scale, rates_.unit);
    if (peer != nullptr) {
      std::printf("; %s takes %.1f us, %.1f %s", peer->name.c_str(), peer->median_s * 1e6, flops / peer->median_s * rates_.scale,
                  rates_.unit);
    }
    if (!absent.empty()) std::printf("; no %s: %s", options_.against.c_str(), absent.c_str());
    std::printf("\n%-34s %9s %9s %8s %8s\n", "row/tile", "time us", rates_.unit, "of peak", "of peer");
  }
  void print_line(const Rung& rung, const Timing* peer, double flops, double peak) const {
    if (!rung.refusal.empty()) {
      std::printf("%-34s refuses: %s\n", rung.row.c_str(), rung.refusal.c_str());
      return;
    }
    const double seconds = rung.timing.median_s, rate = flops / seconds;
    std::printf("%-34s %9.1f %9.1f %8s %8s\n", rung.timing.name.c_str(), seconds * 1e6, rate * rates_.scale, percent(rate, peak).c_str(),
                peer == nullptr ? "" : percent(peer->median_s, seconds).c_str());
  }
  void print_object(const GemmCase& asked, const Rung& rung, const Timing* peer, double flops, double peak) const {
    JsonObject object;
    object.add("device", device_.name).add("layer", asked.layer.text()).add("form", name_of(asked.form));
    object.add("pitch", asked.pitch == PitchPolicy::packed ? "packed" : "aligned").add("dtype", options_.dtype).add("row", rung.row);
    if (!rung.refusal.empty()) {
      std::cout << object.add("refuses", rung.refusal).text() << std::endl;
      return;
    }
    const double rate = flops / rung.timing.median_s;
    object.add("rounds", rung.rounds).add("block_ms", options_.block_s * 1e3).add("settle_ms", options_.settle_s * 1e3);
    object.add("tile", concat(rung.best.tile.m, "x", rung.best.tile.n)).add("split", rung.best.split);
    object.add("time_us", rung.timing.median_s * 1e6).add("lower_quartile_us", rung.timing.lower_quartile_s * 1e6);
    object.add("upper_quartile_us", rung.timing.upper_quartile_s * 1e6).add("tflops", rate * 1e-12);
    object.add("of_peak", peak > 0.0 ? rate / peak : NAN);
    if (peer != nullptr) {
      object.add("peer", peer->name).add("peer_us", peer->median_s * 1e6).add("ratio", peer->median_s / rung.timing.median_s);
    }
    std::cout << object.text() << std::endl;
  }

  const DeviceInfo& device_;
  const GemmBench& options_;
  GemmCandidates candidates_;
  RateUnit rates_;  // JSON has TFLOP/s
  InterleaveOptions rounds_;
};

}  // namespace

int gemm_ladder(const Queue& queue, const DeviceInfo& device, const GemmBench& options) {
  Ladder ladder(queue, device, options);
  for (const GemmItem& item : options.suite.items) ladder.climb(item.ours);
  return 0;
}

}  // namespace tilewave

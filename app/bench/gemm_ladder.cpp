// A kernel's plans are screened by themselves; then the best of every kernel and the peer's take turns.
#include "app/bench/gemm_ladder.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <vector>

#include "app/bench/gemm_candidates.h"
#include "app/text/table.h"
#include "app/text/units.h"
#include "framework/io/json_lines.h"
#include "kernels/core/device_profiles.h"
#include "kernels/core/error.h"
#include "kernels/gemm/catalog.h"

namespace tilewave {
namespace {

constexpr double kSlowestPlan = 1.5;    // one that the model puts further behind its kernel's best is not measured
constexpr double kSlowestKernel = 8.0;  // one further behind the fastest kernel takes no part in the rounds: its one block has to do

struct Rung {
  std::string kernel, refusal;  // why it has no best plan
  GemmPlan best;
  Candidate candidate;  // the best plan's
  Timing timing;
  int rounds = 0;
};

bool can_launch(const GemmKernel& kernel) {
  return kernel.backend == Backend::cuda ? kernel.launch_cuda != nullptr : kernel.launch_cpu != nullptr;
}

class Ladder {
 public:
  Ladder(const Queue& queue, const DeviceInfo& device, const GemmBench& options)
      : device_(device),
        options_(options),
        candidates_(queue, device, options.against, parse_gemm_types(options.dtype)),
        rounds_(interleave_of(options, device.backend)) {
    for (const GemmItem& item : options.suite.items) {
      TW_CHECK_INPUT(item.ours.form != GemmForm::dgrad_gelu_bias,
                     "--ladder --form dgrad_gelu_bias: our kernels do that in two launches; ask for dgrad_gelu, or wgrad_bias.");
      candidates_.check_peer(item.ours);
      choose(problem_of(item.ours, candidates_.types()), device_, {});  // throws what is wrong before anything is measured
    }
  }

  void climb(const GemmCase& asked) {
    std::cerr << concat("measuring every kernel on ", name_of(asked.form), " of ", asked.layer.text(), "\n");
    const GemmProblem problem = problem_of(asked, candidates_.types());
    std::vector<Rung> rungs;
    for (const GemmKernel* kernel : gemm_catalog()) {
      if (kernel->backend != device_.backend || kernel->reference || !can_launch(*kernel)) continue;
      if (kernel == find_gemm_kernel(device_.backend, "naive")) continue;  // the oracle
      rungs.push_back({.kernel = name_of(*kernel), .refusal = kernel->refuse(problem, device_)});
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
    const Measure measure = {.peer = peer,
                             .absent = peers.absent,
                             .flops = static_cast<double>(problem.flops()),
                             .peak = peak_flops_per_s(device_, problem.operand_dtype, problem.math),
                             .bytes = static_cast<double>(problem.bytes()),
                             .bandwidth = device_.bandwidth_bytes_per_s};
    if (!options_.json) return print_all(asked, rungs, measure);
    for (const Rung& rung : rungs) print_object(asked, rung, measure);
  }

 private:
  static std::string percent(double part, double whole) {
    return whole > 0.0 ? concat(std::lround(100.0 * part / whole), " %") : std::string();
  }
  // The kernel's best plan, and its time.
  void screen(const GemmCase& asked, Rung& rung) {
    const OurSide side = candidates_.ours(asked, rung.kernel, kSlowestPlan);
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

  // What rungs are held against.
  struct Measure {
    const Timing* peer = nullptr;
    std::string absent;
    double flops = 0.0, peak = 0.0;  // a peak of 0 is not known
    double bytes = 0.0, bandwidth = 0.0;
  };

  // The fastest kernel first, then all of them in the catalog's order.
  void print_all(const GemmCase& asked, const std::vector<Rung>& rungs, const Measure& measure) const {
    const Rung* fastest = nullptr;
    for (const Rung& rung : rungs) {
      const bool faster = fastest == nullptr || rung.timing.median_s < fastest->timing.median_s;
      if (rung.refusal.empty() && faster) fastest = &rung;
    }
    const std::string what =
        concat(name_of(asked.form), " of ", asked.layer.text(), ", ", asked.pitch == PitchPolicy::packed ? "packed" : "aligned", " pitch, ",
               options_.dtype, " on ", device_text(device_), ": ");
    std::cout << '\n'
              << wrapped(what + (fastest == nullptr ? "no kernel takes it" : answer_text(*fastest, measure)), options_.page) << '\n';
    if (!measure.absent.empty()) std::cout << wrapped(concat("no ", options_.against, ": ", measure.absent), options_.page) << '\n';
    const RateUnit rates = rate_unit(device_.backend);
    Table table({{.heading = "kernel/tile", .align = Align::left},
                 {.heading = "time"},
                 {.heading = rates.unit},
                 {.heading = "of peak", .rank = 1},
                 {.heading = "GB/s", .rank = 3},
                 {.heading = "of bandwidth", .rank = 4},
                 {.heading = "of peer", .rank = 2}});
    for (const Rung& rung : rungs) {
      if (!rung.refusal.empty()) {
        table.remark(concat(rung.kernel, " refuses: ", rung.refusal));
        continue;
      }
      const double seconds = rung.timing.median_s, rate = measure.flops / seconds;
      table.add({rung.timing.name, time_text(seconds), number_text(rate * rates.scale, "%.4g"), percent(rate, measure.peak),
                 measure.bandwidth > 0.0 ? number_text(1e-9 * measure.bytes / seconds, "%.4g") : "",
                 percent(measure.bytes / seconds, measure.bandwidth),
                 measure.peer == nullptr ? "" : percent(measure.peer->median_s, seconds)});
    }
    table.print(std::cout, options_.page);
    std::cout << std::flush;
  }

  std::string answer_text(const Rung& fastest, const Measure& measure) const {
    const double rate = measure.flops / fastest.timing.median_s;
    std::string text = concat("the fastest is ", fastest.timing.name, ", ", time_text(fastest.timing.median_s), ", ", flops_text(rate));
    if (measure.peak > 0.0) text += concat(", ", percent(rate, measure.peak), " of the peak of ", flops_text(measure.peak));
    if (measure.peer != nullptr) {
      const double seconds = measure.peer->median_s;
      text += concat("; ", measure.peer->name, " takes ", time_text(seconds), ", ", flops_text(measure.flops / seconds));
    }
    return text;
  }

  void print_object(const GemmCase& asked, const Rung& rung, const Measure& measure) const {
    const auto& [peer, absent, flops, peak, bytes, bandwidth] = measure;
    JsonObject object;
    object.add("device", device_.name).add("layer", asked.layer.text()).add("form", name_of(asked.form));
    object.add("pitch", asked.pitch == PitchPolicy::packed ? "packed" : "aligned").add("dtype", options_.dtype).add("kernel", rung.kernel);
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
    object.add("gb_per_s", 1e-9 * bytes / rung.timing.median_s);
    object.add("of_bandwidth", bandwidth > 0.0 ? bytes / rung.timing.median_s / bandwidth : NAN);
    if (peer != nullptr) {
      object.add("peer", peer->name).add("peer_us", peer->median_s * 1e6).add("ratio", peer->median_s / rung.timing.median_s);
    }
    std::cout << object.text() << std::endl;
  }

  const DeviceInfo& device_;
  const GemmBench& options_;
  GemmCandidates candidates_;
  InterleaveOptions rounds_;
};

}  // namespace

int gemm_ladder(const Queue& queue, const DeviceInfo& device, const GemmBench& options) {
  Ladder ladder(queue, device, options);
  for (const GemmItem& item : options.suite.items) ladder.climb(item.ours);
  return 0;
}

}  // namespace tilewave

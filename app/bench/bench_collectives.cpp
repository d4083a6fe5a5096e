// tilewave bench collectives --ranks N: what ranks do together, beside what a ring over links of one rate and one latency takes; both are
// fitted to the times. Of GPUs they are kept, and plan predicts with them.
#include <iostream>

#include "app/bench/bench.h"
#include "app/bench/bench_progress.h"
#include "app/options/join_ranks.h"
#include "app/text/table.h"
#include "app/text/units.h"
#include "framework/io/json_lines.h"
#include "framework/measure/calibration.h"
#include "framework/measure/link_times.h"
#include "kernels/gemm/cost/operation_time.h"

namespace tilewave {
namespace {

struct CollectivesOptions {
  DeviceOptions device;
  RankOptions ranks;
  std::int64_t most_mib = 0;  // 0: the device's own
  int rounds = 9;
  PageOptions page;
  bool json = false;
};

struct MeasuredCollectives {
  const DeviceInfo& device;
  std::vector<CollectiveTime> times;
  LinkFit links;
  double launch_s = 0.0;

  // A rank's place in a ring has this much over its link in one direction.
  static double link_rate(const CollectiveTime& time) { return ring_of(time.work).link_bytes / time.timing.median_s; }
  double fitted_s(const CollectiveTime& time) const { return links.seconds(time.work, launch_s); }
};

std::int64_t most_bytes(const CollectivesOptions& options, Backend backend) {
  constexpr std::int64_t kMib = 1 << 20, kOfCpus = 64, kOfGpus = 1024;
  return kMib * (options.most_mib > 0 ? options.most_mib : backend == Backend::cuda ? kOfGpus : kOfCpus);
}

void print_json(const MeasuredCollectives& measured) {
  for (const CollectiveTime& time : measured.times) {
    JsonObject line;
    line.add("device", measured.device.name)
        .add("ranks", time.work.ranks)
        .add("operation", time.operation)
        .add("bytes", time.work.bytes)
        .add("time_us", time.timing.median_s * 1e6)
        .add("lower_quartile_us", time.timing.lower_quartile_s * 1e6)
        .add("upper_quartile_us", time.timing.upper_quartile_s * 1e6)
        .add("link_bytes_per_s", MeasuredCollectives::link_rate(time))
        .add("fitted_us", measured.fitted_s(time) * 1e6);
    std::cout << line.text() << '\n';
  }
  JsonObject links;
  links.add("device", measured.device.name)
      .add("ranks", measured.times.front().work.ranks)
      .add("fitted_link_bytes_per_s", measured.links.bytes_per_s)
      .add("fitted_hop_us", measured.links.hop_s * 1e6)
      .add("error_fraction", measured.links.error);
  std::cout << links.text() << std::endl;
}

void print(const MeasuredCollectives& measured, const Page& page) {
  const int ranks = measured.times.front().work.ranks;
  std::cout << wrapped(concat(ranks, " ranks on ", device_text(measured.device), ": a link moves ",
                              rate_text(1e-9 * measured.links.bytes_per_s), " GB/s, and a hop takes ", time_text(measured.links.hop_s),
                              "; a ring of such links misses the times by ", percent_text(measured.links.error), " on average"),
                       page)
            << "\n\n";
  Table table({{.heading = "operation", .align = Align::left},
               {.heading = "MB"},
               {.heading = "time"},
               {.heading = "GB/s a link", .rank = 1},
               {.heading = "a ring's time", .rank = 2}});
  for (const CollectiveTime& time : measured.times) {
    table.add({std::string(time.operation), number_text(1e-6 * static_cast<double>(time.work.bytes), "%.3f"),
               time_text(time.timing.median_s), rate_text(1e-9 * MeasuredCollectives::link_rate(time)),
               time_text(measured.fitted_s(time))});
  }
  table.print(std::cout, page);
}

// Why plan is not to read them; empty: it is.
std::string not_kept_because(const MeasuredCollectives& measured, const RankEnvironment& started) {
  constexpr std::int64_t kLeastBytes = std::int64_t{64} << 20;  // below, a rate is mostly latency
  if (measured.device.link_bytes_per_s <= 0.0) return "the rate that its links are sold with is not known";
  if (started.local_count != started.count) return "some links lie between machines, whose rate is no share of these GPUs'";
  if (measured.times.back().work.bytes < kLeastBytes) return concat("the largest tensor has less than ", kLeastBytes >> 20, " MiB");
  return {};
}

// Where plan reads them.
void keep(const MeasuredCollectives& measured, const RankEnvironment& started) {
  const std::filesystem::path path = calibration_path(measured.device);
  if (measured.device.backend != Backend::cuda || path.empty()) return;
  if (const std::string why = not_kept_because(measured, started); !why.empty()) {
    std::cerr << concat("not kept for plan: ", why, '\n');
    return;
  }
  save_links(path, {.share = measured.links.bytes_per_s / measured.device.link_bytes_per_s, .hop_s = measured.links.hop_s},
             measured.device);
  std::cerr << concat("kept in ", path.string(), '\n');
}

int bench_collectives(const CollectivesOptions& given) {
  CollectivesOptions options = given;
  options.ranks.apply(options.device);
  const RankEnvironment started = rank_environment();
  const std::int64_t ranks = options.ranks.wanted();
  TW_CHECK_INPUT(ranks <= 1 || started.count == 1 || ranks == started.count, started.variable, " says that ", started.count,
                 " ranks were started, and ", ranks, " are asked for; leave --ranks and --gpus out.");
  TW_CHECK_INPUT(ranks > 1 || started.count > 1, "bench collectives measures what ranks do together; say how many with --ranks or --gpus.");
  if (started.count == 1) return start_ranks(ranks, options.device);
  const JoinedRanks joined = join_ranks(started, options.device);
  const DeviceInfo device = joined.device.probe();
  Context context(joined.device.make_queue(device), device, {.precision = Precision::fp32, .ranks = joined.ranks});
  MeasuredCollectives measured{.device = device, .times = {}, .links = {}};
  constexpr std::int64_t kLeastBytes = 4096, kGrowth = 4;
  for (std::int64_t bytes = kLeastBytes; bytes <= most_bytes(options, device.backend); bytes *= kGrowth) {
    for (CollectiveTime& time : measure_collectives(context, bytes, options.rounds)) {
      if (joined.speaks() && !options.json) tell(concat(time.operation, " of ", time.work.bytes, " bytes"), time.timing);
      measured.times.push_back(std::move(time));
    }
  }
  if (!joined.speaks()) return 0;
  if (device.backend == Backend::cuda) {
    const OperationModel& model = cost_model_of(device).operations;
    measured.launch_s = model.launch_s + model.link_start_s;
  }
  measured.links = fit_links(measured.times, measured.launch_s);
  if (options.json) {
    print_json(measured);
  } else {
    print(measured, options.page.of_stdout());
  }
  keep(measured, started);
  return 0;
}

}  // namespace

Command add_bench_collectives(CLI::App& bench) {
  CLI::App* command =
      bench.add_subcommand("collectives", "what ranks do together, and the links that this says they have (docs/use/many-gpus.md)");
  const auto options = std::make_shared<CollectivesOptions>();
  options->ranks.add_to(*command);
  command->add_option("--most", options->most_mib, "MiB of the largest tensor (default: 1024 between GPUs, 64 between CPUs)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  command->add_option("--rounds", options->rounds, "rounds, each begun together")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_flag("--json", options->json, "one JSON object a line");
  options->page.add_to(*command);
  options->device.add_to(*command);
  return {command, [options] { return bench_collectives(*options); }};
}

}  // namespace tilewave

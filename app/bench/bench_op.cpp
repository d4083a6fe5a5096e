// tilewave bench op NAME...: operations that memory bounds, on a Transformer's shapes: time, the bytes they must move over it, and
// the share of a device copy that takes turns with them in the same run; a few of them also at the sizes of a step, where launches
// count. Launches follow each other in a captured graph, each on operands of its own. Bytes are cost()'s; a copy counts what it reads
// and writes.
#include <algorithm>
#include <iostream>
#include <iterator>

#include "app/bench/bench.h"
#include "app/bench/bench_operands.h"
#include "app/bench/bench_progress.h"
#include "app/text/table.h"
#include "app/text/units.h"
#include "framework/io/json_lines.h"
#include "framework/measure/interleave.h"
#include "framework/measure/operation_work.h"
#include "kernels/core/graph.h"

namespace tilewave {
namespace {

struct OpOptions {
  DeviceOptions device;
  std::vector<std::string> names;
  std::string precision;
  std::string pitch = "aligned";
  std::int64_t rows = 0, cols = 0;
  int rounds = 9;
  PageOptions page;
  bool json = false;
};

// All shapes of each name, in the order asked for; of a shape that is asked for, one.
std::vector<BenchedOperation> chosen(const OpOptions& options) {
  const std::span<const BenchedOperation> large = benched_operations();
  std::vector<BenchedOperation> all(large.begin(), large.end());
  if (options.rows == 0 && options.cols == 0) all.insert(all.end(), step_operations().begin(), step_operations().end());
  if (options.names.empty()) return all;
  std::vector<BenchedOperation> result;
  for (const std::string& name : options.names) {
    const std::string_view known = benched_operation(name).name;
    const auto is_it = [&](const BenchedOperation& operation) { return operation.name == known; };
    std::copy_if(all.begin(), all.end(), std::back_inserter(result), is_it);
  }
  return result;
}

struct MeasuredOperation {
  BenchedOperation operation;
  Shape shape;
  std::int64_t bytes = 0;
  Timing timing;
  double copied_per_s = 0.0;

  double bytes_per_s() const { return static_cast<double>(bytes) / timing.median_s; }
  double roofline_s() const { return static_cast<double>(bytes) / copied_per_s; }
  double share() const { return bytes_per_s() / copied_per_s; }
};

struct OpRun {
  const OpOptions& options;
  const DeviceInfo& device;
  Precision precision{};
};
void print_json(const MeasuredOperation& one, const OpRun& run) {
  JsonObject object;
  object.add("device", run.device.name)
      .add("operation", one.operation.name)
      .add("rows", one.shape.rows)
      .add("cols", one.shape.cols)
      .add("precision", name_of(run.precision))
      .add("row_pitch", run.options.pitch)
      .add("bytes", one.bytes)
      .add("time_us", one.timing.median_s * 1e6)
      .add("lower_quartile_us", one.timing.lower_quartile_s * 1e6)
      .add("upper_quartile_us", one.timing.upper_quartile_s * 1e6)
      .add("bytes_per_s", one.bytes_per_s())
      .add("copy_bytes_per_s", one.copied_per_s)
      .add("floor_us", one.roofline_s() * 1e6)
      .add("copy_fraction", one.share());
  if (*one.operation.operands != 0) object.add("operands", one.operation.operands);
  std::cout << object.text() << std::endl;
}

// What reaches least of a copy's rate, then all of them.
void print(const std::vector<MeasuredOperation>& all, const std::string& where, const Page& page) {
  const MeasuredOperation& least = *std::ranges::min_element(all, {}, &MeasuredOperation::share);
  const MeasuredOperation& most = *std::ranges::max_element(all, {}, &MeasuredOperation::share);
  std::cout << wrapped(concat(where, ": of a copy's rate ", percent_text(least.share(), 0), " (", least.operation.name, ") to ",
                              percent_text(most.share(), 0), " (", most.operation.name, ")"),
                       page)
            << "\n\n";
  Table table({{.heading = "operation", .align = Align::left},
               {.heading = "shape"},
               {.heading = "MB", .rank = 3},
               {.heading = "time"},
               {.heading = "roofline time", .rank = 2},
               {.heading = "GB/s"},
               {.heading = "copy GB/s", .rank = 4},
               {.heading = "share"},
               {.heading = "operands", .align = Align::left, .rank = 1}});
  for (const MeasuredOperation& one : all) {
    table.add({one.operation.name, concat(one.shape.rows, "x", one.shape.cols), number_text(1e-6 * static_cast<double>(one.bytes), "%.1f"),
               time_text(one.timing.median_s), time_text(one.roofline_s()), rate_text(1e-9 * one.bytes_per_s()),
               rate_text(1e-9 * one.copied_per_s), number_text(one.share(), "%.2f"), one.operation.operands});
  }
  table.print(std::cout, page);
}

constexpr std::int64_t copy_bytes_on(Backend backend) { return std::int64_t{1} << (backend == Backend::cuda ? 30 : 28); }

int bench_op(const OpOptions& options) {
  const std::vector<BenchedOperation> asked = chosen(options);
  const DeviceInfo device = options.device.probe();
  const Precision precision = precision_of(options.precision, device.backend);
  TW_CHECK_INPUT(options.pitch == "aligned" || options.pitch == "packed", "--row-pitch ", options.pitch, ": it is aligned or packed.");
  Context context(options.device.make_queue(device), device,
                  {.precision = precision, .pitch = options.pitch == "aligned" ? PitchPolicy::aligned : PitchPolicy::packed});
  context.write_step_state({.step = 1, .seed = 1, .learning_rate = 1e-4, .real_tokens = 1000});
  const auto wait = [&] { synchronize(context.queue()); };
  const std::int64_t copy_bytes = copy_bytes_on(device.backend);
  const Tensor from = random_tensor(context, {1024, copy_bytes / 4 / 1024}, DType::f32, 1), to = context.tensor(from.shape(), DType::f32);
  const Candidate copy{
      .name = "copy", .launch = [&](std::size_t) { copy_on_device(context.queue(), to.data(), from.data(), copy_bytes); }, .wait = wait};
  InterleaveOptions interleave{.load_s = load_s_of(device.backend), .rounds = options.rounds};
  std::vector<MeasuredOperation> all;
  for (const BenchedOperation& operation : asked) {
    const Shape shape{options.rows > 0 ? options.rows : operation.shape.rows, options.cols > 0 ? options.cols : operation.shape.cols};
    std::vector<OperationWork> sets{operation.prepare(context, shape)};
    const std::int64_t bytes = sets.front().entry.cost.bytes;
    while (static_cast<std::int64_t>(sets.size()) * bytes < kRotatedBytes && sets.size() < 64)
      sets.push_back(operation.prepare(context, shape));
    for (const OperationWork& set : sets) set.launch();  // loads kernels
    Graph graph = capture(context.queue(), [&] {
      for (const OperationWork& set : sets) set.launch();
    });
    const Candidate candidate{
        .name = operation.name, .launch = [&](std::size_t) { graph.replay(); }, .launches = sets.size(), .wait = wait};
    const Comparison comparison = compare({candidate}, {copy}, interleave);
    interleave.load_s = 0.0;  // the device is warm now
    all.push_back({.operation = operation,
                   .shape = shape,
                   .bytes = bytes,
                   .timing = comparison.ours.front(),
                   .copied_per_s = 2.0 * static_cast<double>(copy_bytes) / comparison.peers.front().median_s});
    if (options.json) {
      print_json(all.back(), {.options = options, .device = device, .precision = precision});
    } else {
      tell(concat(operation.name, ' ', shape.rows, 'x', shape.cols), all.back().timing);
    }
  }
  if (!options.json) {
    print(all, concat(name_of(precision), ", ", options.pitch, " pitch, on ", device_text(device)), options.page.of_stdout());
  }
  return 0;
}

}  // namespace

Command add_bench_op(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("op", "operations that memory bounds, beside a device copy");
  const auto options = std::make_shared<OpOptions>();
  command->add_option("name", options->names, "operations (default: all of them)");
  command->add_option("--rows", options->rows, "rows (default: each operation's own shape)")->check(CLI::Range(1, 1 << 30));
  command->add_option("--cols", options->cols, "columns")->check(CLI::Range(1, 1 << 30));
  command->add_option("--precision", options->precision, "types, as run.precision has them (default: bf16 on a GPU, else fp32)");
  command->add_option("--row-pitch", options->pitch, "aligned or packed, as guidelines.row_pitch")->capture_default_str();
  command->add_option("--rounds", options->rounds, "interleaved rounds")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_flag("--json", options->json, "one JSON object a line");
  options->page.add_to(*command);
  options->device.add_to(*command);
  return {command, [options] { return bench_op(*options); }};
}

}  // namespace tilewave

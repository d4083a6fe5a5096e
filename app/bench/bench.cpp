// tilewave bench: what can be measured, a command each.
#include "app/bench/bench.h"

#include <algorithm>
#include <vector>

namespace tilewave {

Command add_bench(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "bench", "measure GEMMs, other operations, whole steps or what ranks do together; a ratio is ours / peer in speed, from one run");
  command->require_subcommand(1);
  const std::vector<Command> measurements = {add_bench_gemm(*command),      add_bench_step(*command),      add_bench_op(*command),
                                             add_bench_attention(*command), add_bench_calibrate(*command), add_bench_collectives(*command)};
  return {command, [measurements] {
            return std::find_if(measurements.begin(), measurements.end(), [](const Command& one) { return one.app->parsed(); })->action();
          }};
}

}  // namespace tilewave

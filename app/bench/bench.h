// The measurements that tilewave bench gathers, each in the file of its name.
#pragma once

#include "app/options/command.h"

namespace tilewave {

Command add_bench_gemm(CLI::App& bench);
Command add_bench_step(CLI::App& bench);
Command add_bench_op(CLI::App& bench);
Command add_bench_attention(CLI::App& bench);
Command add_bench_calibrate(CLI::App& bench);
Command add_bench_collectives(CLI::App& bench);

}  // namespace tilewave

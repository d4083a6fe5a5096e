// tilewave bench op, which app/bench.cpp puts beside the other measurements.
#pragma once

#include "app/command.h"

namespace tilewave {

Command add_bench_op(CLI::App& bench);

}  // namespace tilewave

// tilewave bench attention, which app/bench.cpp puts beside the other measurements.
#pragma once

#include "app/command.h"

namespace tilewave {

Command add_bench_attention(CLI::App& bench);

}  // namespace tilewave

// tilewave bench calibrate: the time model of this GPU.
#pragma once

#include "app/command.h"

namespace tilewave {

Command add_bench_calibrate(CLI::App& bench);

}  // namespace tilewave

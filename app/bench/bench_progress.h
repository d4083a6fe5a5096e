// A benchmark prints its answer first and then its table, so what it measures on the way goes to the standard error at once, a line each:
// a run that is stopped leaves them.
#pragma once

#include <iostream>
#include <string>

#include "app/text/units.h"
#include "framework/measure/interleave.h"
#include "kernels/core/error.h"

namespace tilewave {

inline void tell(const std::string& what, const Timing& timing) { std::cerr << concat(what, ": ", time_text(timing.median_s), "\n"); }

}  // namespace tilewave

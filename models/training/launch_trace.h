// The launches of profiled steps as a Chrome trace (the JSON array format's object form: "traceEvents" of complete events), which Perfetto
// and chrome://tracing open: steps above, their launches below.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/tensor/profiler.h"

namespace tilewave {

std::string launch_trace(const std::vector<ProfiledLaunch>& launches, std::string_view process);

}  // namespace tilewave

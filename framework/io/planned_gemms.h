// GEMMs with the plans that ran them, as JSON lines: what a run folder keeps so that a resumed run launches the same kernels, what
// choice by measurement remembers, and what calibration has measured. A plan is stored as what names it (row, tile, parts of K, a
// library's algorithm); the rest is planned anew, so that a stored plan is one that this build would make.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/device.h"
#include "kernels/gemm/plan.h"

namespace tilewave {

struct PlannedGemm {
  GemmProblem problem;
  GemmPlan plan;
  double seconds = 0.0;  // measured; 0: not
};

// The first line says on what: plans are those of one device under one driver and, where the fastest of all was wanted, of one catalog.
struct PlannedGemms {
  std::string device, driver;
  std::uint32_t catalog = 0;  // a checksum; 0: no matter
  std::vector<PlannedGemm> gemms;
};

void write_planned_gemms(const std::filesystem::path& path, const PlannedGemms& gemms);
// InputError, a sentence with the path, where the file is none of ours. A line whose row this build does not have, or whose row
// refuses the problem on the device, is left out and counted.
struct ReadGemms {
  PlannedGemms gemms;
  std::size_t left_out = 0;
};
ReadGemms read_planned_gemms(const std::filesystem::path& path, const DeviceInfo& device);

// $XDG_CACHE_HOME/tilewave, or ~/.cache/tilewave; empty where neither variable is set.
std::filesystem::path cache_folder();
// The device's name as a file's: "NVIDIA H200" is nvidia-h200.
std::string file_name_of(const DeviceInfo& device);

}  // namespace tilewave

// The cost model of a GPU, fitted to what it measures: GEMMs of a fixed set of shapes, forms, rows and tiles, outside the suites
// that claims are made over (operation_calibration.h has what is no GEMM). Stored in cache_folder()/<device>.json: who it is about, the
// constants by name, and how well they fit.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/io/planned_gemms.h"
#include "kernels/core/queue.h"
#include "kernels/gemm/cost/cost_model.h"

namespace tilewave {

// The problems that a calibration measures.
std::vector<GemmProblem> calibration_problems();

// Times the best few plans of every row on each problem; `done` hears of each problem as it ends.
std::vector<PlannedGemm> measure_for_calibration(const Queue& queue, const DeviceInfo& device, const std::function<void()>& done);

struct Calibration {
  CostModel model;
  std::size_t points = 0;
  double error_before = 0.0, error_after = 0.0;  // the mean of |ln(predicted / measured)|, of each problem's fastest plan
  double operation_error_before = 0.0, operation_error_after = 0.0;  // of operations that are no GEMMs, where they were measured
  double choice_before = 1.0, choice_after = 1.0;                    // the chosen plan's time over the fastest's, geometric mean
};
// The constants that predict the times best, beginning at the device's own.
Calibration fit_cost_model(std::span<const PlannedGemm> measured, const DeviceInfo& device);

// A constant as a fit moves it: the logarithm, of a fraction (by its name) that of its odds, so that it stays below 1.
double coordinate_of(std::string_view constant, double value);
double constant_at(std::string_view constant, double coordinate);

// Where the device's calibration is kept; empty where there is no cache folder.
std::filesystem::path calibration_path(const DeviceInfo& device);
void save_calibration(const std::filesystem::path& path, const Calibration& calibration, const DeviceInfo& device);

// What links were measured to be: the share of the printed rate, and a hop's latency. They are stored beside a calibration or without one;
// neither changes the other.
struct LinkConstants {
  double share = 0.0, hop_s = 0.0;
};
void save_links(const std::filesystem::path& path, const LinkConstants& links, const DeviceInfo& device);

// Gives the device its stored calibration, if there is one. What there is to say about it: nothing where there is none, a sentence
// where a file is there that cannot be used (unreadable, another driver's) and the defaults stay.
std::string use_calibration(DeviceInfo& device);

}  // namespace tilewave

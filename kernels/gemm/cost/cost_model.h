// What a GEMM's predicted time on a GPU is made of: one small set of numbers a device, carried by its DeviceInfo, so that a plan
// needs the problem, the tile and the device alone. A row's plan counts work (cycles of its schedule, bytes, multiply-adds); these
// numbers turn it into seconds. Fractions are of the device's own peaks and cycles are of its highest clock, so that one GPU's
// numbers scale to another; `source` says whose they are. `tilewave bench calibrate` fits them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/core/device.h"
#include "kernels/gemm/cost/operation_model.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

enum class CostModelSource : std::uint8_t { scaled, measured, calibrated };

// What each is stands in constants.cpp.
struct CostModel {
  double launch_s = 1.18e-6;
  double sustained_fraction = 0.899;
  double l2_bytes_per_cycle = 57.1;
  double multicast_fraction = 0.932;
  double neighbours_fraction = 0.72;
  double patches_fraction = 0.85;
  double memory_fraction = 0.623;
  double repack_fraction = 0.645;
  double wgmma_fraction = 0.715;
  double unspecialized_fraction = 0.794;
  double registers_fraction = 0.95;
  double row_sums_fraction = 0.123;
  double fill_cycles = 1010.0;
  double tile_cycles = 3270.0;
  double packing_cycles = 1540.0;
  double turn_cycles = 500.0;
  double last_turn_cycles = 4500.0;
  double block_cycles = 8270.0;
  double store_bytes_per_cycle = 20.7, direct_store_bytes_per_cycle = 1.09;
  double finish_cycles = 0.0172;
  double activation_cycles = 0.0727;
  double derivative_cycles = 0.205;
  double narrow_store_cycles = 2.21;
  double narrow_side_cycles = 6.2;
  double late_side_cycles = 0.175;
  double late_input_cycles = 0.02;
  double late_activation_cycles = 0.0333;
  double exchange_bytes_per_cycle = 13.5;
  double sharing_cycles = 4000.0;
  double link_cycles = 27700.0;
  double meeting_cycles = 4600.0;
  double mma_fraction = 0.529;
  double mma_bulk_copy_fraction = 0.74;
  double mma_pipelined_fraction = 0.422, mma_narrow_8_fraction = 0.36, mma_narrow_4_fraction = 0.32, mma_narrow_2_fraction = 0.26;
  double mma_one_stage_fraction = 0.12;
  double mma_tf32_fraction = 0.774;
  double mma_fill_cycles = 2490.0;
  double mma_store_cycles = 0.224;
  double mma_bulk_copy_store_cycles = 0.08;
  double mma_pass_cycles = 0.335;
  double cuda_core_fraction = 0.4, one_output_fraction = 0.068;
  double gemv_memory_fraction = 0.884;
  double gemv_round_cycles = 1500.0, gemv_cta_cycles = 1500.0;
  OperationModel operations;
  CostModelSource source = CostModelSource::scaled;
};

// Each constant by name, for whoever stores, prints or fits them.
struct CostConstant {
  std::string_view name, unit, meaning;
  double CostModel::*value = nullptr;
};
std::span<const CostConstant> cost_constants();

// The device's own, or the default one that goes with its name.
const CostModel& cost_model_of(const DeviceInfo& device);
// The numbers measured on that GPU where there are any, else an H200's.
CostModel default_cost_model(std::string_view device_name);
// "calibrated here", "measured on an NVIDIA H200", "not measured: scaled from an NVIDIA H200".
std::string source_of(const CostModel& model);

// Bytes that an element of D costs beside its products, by the epilogue. Side inputs and outputs have the operands' type.
struct EpilogueBytes {
  double stored = 0.0, loaded = 0.0;
};
inline EpilogueBytes epilogue_bytes(const GemmProblem& problem) {
  const Epilogue& e = problem.epilogue;
  const auto output = static_cast<double>(size_of(problem.output_dtype)), side = static_cast<double>(size_of(problem.operand_dtype));
  return {.stored = output + (e.saved_input ? side : 0.0),
          .loaded = (e.derivative != Activation::none ? side : 0.0) + (e.residual ? side : 0.0) + (e.accumulate ? output : 0.0)};
}

// Cycles into seconds; GemmPlan::predicted_s says what an unknown clock means.
inline double seconds_of(double cycles, const DeviceInfo& device) { return cycles / (device.clock_hz > 0.0 ? device.clock_hz : 1e9); }

// One launch as the rows count it.
struct GemmWork {
  double schedule_cycles = 0.0;  // of the busiest SM, were nothing else in the way
  double peak_cycles = 0.0;      // of an SM: the products, padding included, shared out evenly at the units' peak rate
  double l2_bytes = 0.0;         // that SMs read and write
  double memory_bytes = 0.0;
};
// The launch, and the longest of schedule, power, second-level cache and memory; near ties take longer than either.
double seconds_of(const GemmWork& work, const DeviceInfo& device);

}  // namespace tilewave

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
  double launch_s = 1.195e-06;
  double sustained_fraction = 0.929;
  double l2_bytes_per_cycle = 55.9;
  double load_bytes_per_cycle = 102.0;
  double torn_row_lines = 4.23;
  double multicast_fraction = 0.689;
  double neighbours_fraction = 0.913;
  double patches_fraction = 0.745;
  double read_fraction = 0.672;
  double write_fraction = 0.537;
  double torn_read_fraction = 0.911;
  double torn_write_fraction = 0.797;
  double add_fraction = 0.622;
  double repack_fraction = 0.566;
  double wgmma_fraction = 0.686;
  double unspecialized_fraction = 0.794;
  double registers_fraction = 0.905;
  double row_sums_fraction = 0.138;
  double fill_cycles = 55.7, one_wave_fill_cycles = 1740.0, one_wave_activation_cycles = 864.0;
  double tile_cycles = 1600.0;
  double packing_cycles = 1150.0;
  double turn_cycles = 54.7;
  double last_turn_cycles = 832.0;
  double block_cycles = 6570.0;
  double torn_store_cycles = 0.00549;
  double store_bytes_per_cycle = 26.5, direct_store_bytes_per_cycle = 1.09;
  double finish_cycles = 0.0194;
  double activation_cycles = 0.0347;
  double derivative_cycles = 0.381;
  double narrow_store_cycles = 2.27;
  double narrow_side_cycles = 5.55;
  double late_side_cycles = 0.158;
  double late_input_cycles = 0.00497;
  double late_activation_cycles = 0.00707;
  double exchange_bytes_per_cycle = 18.2;
  double sharing_cycles = 11200.0;
  double link_cycles = 22700.0;
  double meeting_cycles = 4000.0;
  double partial_cycles = 712.0;
  double cluster_partial_cycles = 1130.0;
  double mma_fraction = 0.529;
  double mma_bulk_copy_fraction = 0.676;
  double mma_pipelined_fraction = 0.422, mma_narrow_8_fraction = 0.36, mma_narrow_4_fraction = 0.32, mma_narrow_2_fraction = 0.26;
  double mma_one_stage_fraction = 0.12;
  double mma_tf32_fraction = 0.774;
  double mma_fill_cycles = 2490.0;
  double mma_store_cycles = 0.224;
  double mma_bulk_copy_store_cycles = 0.0367;
  double mma_pass_cycles = 0.335, mma_narrow_pass_cycles = 0.619;
  double cuda_core_fraction = 0.4, one_output_fraction = 0.068;
  double gemv_memory_fraction = 0.884;
  double gemv_round_cycles = 1500.0, gemv_across_round_cycles = 6000.0, gemv_cta_cycles = 1500.0;
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
  double schedule_cycles = 0.0;                  // of the busiest SM, were nothing else in the way
  double peak_cycles = 0.0;                      // of an SM: the products, padding included, shared out evenly at the units' peak rate
  double l2_bytes = 0.0;                         // that SMs read and write
  double read_bytes = 0.0, written_bytes = 0.0;  // in memory; what does not start on lines of 128 bytes counted for what takes as long
};
// The least that a launch reads and writes, but for what its kernel reads again.
GemmWork memory_work(const GemmProblem& problem, const DeviceInfo& device);
// The launch, and the longest of schedule, power, second-level cache and memory; near ties take longer than either.
double seconds_of(const GemmWork& work, const DeviceInfo& device);

}  // namespace tilewave

// Model: the aligned row's time, and of each copy a launch and its bytes, read and written, at the rate of such passes.
#include "kernels/gemm/sm90/repacked.h"

#include <algorithm>
#include <cmath>

#include "kernels/core/queue.h"
#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/facts/has_cuda.h"
#include "kernels/gemm/sm90/persistent_deferred.h"

namespace tilewave {
namespace {

// The problem that the copies pose.
GemmProblem aligned_problem(GemmProblem p) {
  const Repacked copied = repacked(p);
  const auto align = [](bool copy, std::int64_t cols, std::int64_t& pitch, std::int64_t& alignment) {
    if (!copy) return;
    pitch = repacked_pitch(cols);
    alignment = 128;
  };
  align(copied.a, p.a_major == Major::k ? p.k : p.m, p.a_pitch, p.a_alignment);
  align(copied.b, p.b_major == Major::k ? p.k : p.n, p.b_pitch, p.b_alignment);
  align(copied.d, p.d_major == Major::m ? p.m : p.n, p.d_pitch, p.d_alignment);
  return p;
}

std::string refuse(const GemmProblem& problem, const DeviceInfo& device) {
  std::string refusal = kPersistentDataParallelKernel.own_refusal(aligned_problem(problem), device);
  if (!refusal.empty()) return refusal;
  const Repacked copied = repacked(problem);
  return copied.a || copied.b || copied.d ? "" : "all rows start on multiples of 16 bytes already.";
}

// The workspace of all copies, and their passes.
struct Copies {
  std::int64_t workspace_bytes = 0, moved_bytes = 0;
  int passes = 0;

  void add(std::int64_t rows, std::int64_t cols, std::int64_t element_bytes, int times) {
    workspace_bytes += repacked_bytes(rows, cols, element_bytes);
    moved_bytes += 2 * rows * cols * element_bytes * times;
    passes += times;
  }
  double seconds(const DeviceInfo& device) const {
    const CostModel& model = cost_model_of(device);
    const double rate = device.bandwidth_bytes_per_s * model.repack_fraction;
    return passes * model.launch_s + (rate > 0.0 ? static_cast<double>(moved_bytes) / rate : 0.0);
  }
};
Copies copies_of(const GemmProblem& p) {
  const Repacked copied = repacked(p);
  const Epilogue& e = p.epilogue;
  const std::int64_t operand = size_of(p.operand_dtype), output = size_of(p.output_dtype);
  Copies copies;
  if (copied.a) copies.add(p.a_major == Major::k ? p.m : p.k, p.a_major == Major::k ? p.k : p.m, operand, 1);
  if (copied.b) copies.add(p.b_major == Major::k ? p.n : p.k, p.b_major == Major::k ? p.k : p.n, operand, 1);
  const auto add_like_d = [&](std::int64_t element_bytes, int times) {
    copies.add(p.d_major == Major::m ? p.n : p.m, p.d_major == Major::m ? p.m : p.n, element_bytes, times);
  };
  if (copied.d) {
    add_like_d(output, e.accumulate ? 2 : 1);
    for (const bool beside : {e.saved_input, e.derivative != Activation::none, e.residual}) {
      if (beside) add_like_d(std::max(operand, output), 1);  // of either type
    }
  }
  return copies;
}

bool is_deferred_tile(Tile tile) { return std::ranges::count(kPersistentDeferredKernel.tiles, tile) > 0; }

// Whoever multiplies.
std::int64_t shared_bytes(Tile tile) {
  return std::max(persistent_data_parallel_shared_bytes(tile), is_deferred_tile(tile) ? persistent_deferred_shared_bytes(tile) : 0);
}

GemmPlan plan(const GemmProblem& problem, Tile tile, const DeviceInfo& device, int) {
  const GemmProblem aligned = aligned_problem(problem);
  const Copies copies = copies_of(problem);
  GemmPlan plan = kernel_of_repacked(aligned, tile, device).plan(aligned, tile, device, 0);
  const double seconds = copies.seconds(device);
  plan.inside = concat(name_of(plan.composition), " multiplies; ", std::round(1e7 * seconds) / 10.0, " us are for ", copies.passes,
                       copies.passes == 1 ? " pass" : " passes", " over ",
                       std::round(0.5e-5 * static_cast<double>(copies.moved_bytes)) / 10.0, " MB");
  plan.a_alignment = problem.a_alignment;
  plan.b_alignment = problem.b_alignment;
  plan.d_alignment = problem.d_alignment;
  plan.workspace_bytes = copies.workspace_bytes;
  plan.predicted_s += seconds;
  return plan;
}

}  // namespace

const GemmKernel& kernel_of_repacked(const GemmProblem& problem, Tile tile, const DeviceInfo& device) {
  const GemmKernel& deferred = kPersistentDeferredKernel;
  const bool whole_eights = (problem.d_major == Major::m ? problem.m : problem.n) % 8 == 0;
  const bool defers = whole_eights && is_deferred_tile(tile) && problem.epilogue.derivative == Activation::none &&
                      deferred.own_refusal(problem, device).empty();
  return defers ? deferred : kPersistentDataParallelKernel;
}

constinit const GemmKernel kRepackedKernel = on_hopper({.composition = {.kernel = "repacked"},
                                                        .tiles = kRepackedTiles,
                                                        .shared_bytes = shared_bytes,
                                                        .own_refusal = refuse,
                                                        .own_plan = plan,
                                                        .launch_cuda = cuda_launch<launch_repacked>()});

}  // namespace tilewave

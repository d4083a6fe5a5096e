// What bounds a GEMM's launch: of the time that its plan predicts, the part that makes it. Bytes and FLOPs alone say what could bound it
// (Deep Learning Performance, section 3.3); between that and the prediction lie the launch itself, idle SMs, padded tiles, rows that start
// anywhere and kernels without Tensor Cores.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/planning/plan.h"

namespace tilewave {

enum class Limit : std::uint8_t { unknown, math, memory, latency, launch, cuda_cores, alignment, tiles, waves };
constexpr std::string_view name_of(Limit limit) {
  constexpr std::string_view names[] = {"", "math", "memory", "latency", "launch", "CUDA cores", "alignment", "tiles", "waves"};
  return names[static_cast<int>(limit)];
}

struct LaunchTerms {
  double predicted_s = 0.0;
  double launch_s = 0.0;  // to start it
  double memory_s = 0.0;  // its bytes at the printed bandwidth
  double math_s = 0.0;    // its FLOPs at the printed peak
  // How many times as long its products take, each by itself and 1 at least:
  double cuda_cores = 1.0;  // on the units of its row, where others are faster
  double alignment = 1.0;   // for rows that do not start on 16 bytes, or a K that is no multiple of them
  double tiles = 1.0;       // for the padding of tiles
  double waves = 1.0;       // for SMs that idle in the last of several waves
  double idle_sms = 1.0;    // for SMs that have no block at all
};

LaunchTerms launch_terms(const GemmProblem& problem, const GemmPlan& plan, const DeviceInfo& device);
// How many times as long the plan takes as one whose rows start on 128 bytes, with a K of a multiple of 16 bytes; 1 at least.
double times_of_alignment(const GemmProblem& problem, const GemmPlan& plan, const DeviceInfo& device);

// math or memory: that least time is about a third of the prediction or more, and the products take no more than a third longer than
// theirs. Where they do, the largest of the reasons. launch: starting it takes longest. latency: SMs have no block, or nothing of all this
// comes to a third of the prediction, so that the SMs wait. unknown: no prediction, peak or bandwidth.
Limit limit_of(const LaunchTerms& terms);
inline Limit limit_of(const GemmProblem& problem, const GemmPlan& plan, const DeviceInfo& device) {
  return limit_of(launch_terms(problem, plan, device));
}

}  // namespace tilewave

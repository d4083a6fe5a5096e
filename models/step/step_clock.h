// A step's queue and the links between its ranks as time goes on, by predicted times: what ranks do together begins when it is launched and
// the links are free, beside what the queue goes on with, and is waited for where the trace says so.
//
// What speaks over the links runs on SMs. A GEMM that wants all of them at once has blocks that begin when the links fall silent, and ends
// so much later; one of few blocks does not.
#pragma once

#include <cstdint>

#include "kernels/core/device.h"
#include "models/step/train_step.h"

namespace tilewave {

struct StepClock {
  double now_s = 0.0, links_free_s = 0.0;  // from the step's begin
  double links_s = 0.0;                    // the links at work
  double exposed_s = 0.0;                  // waited for
  double delayed_s = 0.0;                  // GEMMs whose blocks waited for SMs

  void launch(double seconds) { now_s += seconds; }
  void launch_gemm(const GemmPlan& plan, const DeviceInfo& device);
  // When it is done.
  double launch_beside(double seconds);
  void await(double done_s);
  // So many times more what has been since.
  void repeat(const StepClock& since, double times);
};

// How much later a GEMM ends whose first `busy_s` the links are at work in.
double delay_s(const GemmPlan& plan, double busy_s, const DeviceInfo& device);

// A step of so many passes.
StepClock clock_step(const StepTrace& trace, std::int64_t passes, const DeviceInfo& device);

}  // namespace tilewave

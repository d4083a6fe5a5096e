// Every kernel and tile of the catalog on the GEMMs that a training step makes of fully-connected layers, ranked, against a library or
// another form of our own in the same run, and the model's choice and prediction beside what was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/bench/gemm_suite.h"
#include "app/text/page.h"
#include "framework/measure/interleave.h"
#include "kernels/core/device.h"
#include "kernels/core/queue.h"

namespace tilewave {

struct GemmBench {
  GemmSuite suite;
  std::string kernel;   // this one alone; empty: all but the oracle and the libraries
  std::string against;  // of a GPU "cublas", "cublas_gemv" or "cublaslt", of a CPU "openblas"; empty: nothing
  std::string dtype = "bf16";
  int rounds = 9;
  double block_s = 0.02, settle_s = 0.0;
  std::optional<std::uint64_t> seed;  // of a suite that is drawn: with it the candidates beside the model's best are drawn too
  bool calibrate = false;             // a GPU's: predict by a cost model that this run measures first
  Page page;
  bool json = false;
};

InterleaveOptions interleave_of(const GemmBench& options, Backend backend);

// What cannot be measured is refused before anything is printed.
int bench_gemm(const Queue& queue, DeviceInfo device, const GemmBench& options);

}  // namespace tilewave

// tilewave bench gemm on a GPU: every row and tile of the catalog on the GEMMs that a training step makes of fully-connected layers,
// ranked, against a library or another form of our own in the same run, and the model's choice and prediction beside what was measured.
#pragma once

#include <string>

#include "app/gemm_suite.h"
#include "kernels/device.h"
#include "kernels/queue.h"

namespace tilewave {

struct CudaGemmBench {
  GemmSuite suite;
  std::string row;      // this row alone; empty: all but the oracle and the libraries
  std::string against;  // "cublas" or "cublaslt"; empty: nothing
  std::string dtype = "bf16";
  int rounds = 9;
  double block_s = 0.02;
  bool calibrate = false;  // predict by a time model that this run measures first
  bool json = false;
};

int bench_gemm_cuda(const Queue& queue, DeviceInfo device, const CudaGemmBench& options);

}  // namespace tilewave

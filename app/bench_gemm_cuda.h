// tilewave bench gemm on a GPU: every row and tile of the catalog on the GEMMs that a training step makes of fully-connected layers,
// ranked, and against cuBLASLt in the same run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/error.h"
#include "kernels/queue.h"

namespace tilewave {

// A fully-connected layer on a number of tokens, written out<-in@tokens.
struct Layer {
  std::int64_t out = 0, in = 0, tokens = 0;

  std::string text() const { return sentence(out, "<-", in, "@", tokens); }
};

struct CudaGemmBench {
  std::vector<std::string> layers;  // as written
  std::vector<Layer> shapes;        // and as read; none of either: the suite
  std::vector<std::string> forms;   // empty: the four plain ones
  std::string row;                  // this row alone; empty: all but the oracle and the libraries
  std::string against;              // "cublas" or "cublaslt"; empty: nothing
  std::string dtype = "bf16";       // or f16, tf32, f32, f64
  std::string pitch = "packed";     // or aligned
  int rounds = 9;
  double block_s = 0.02;
  bool json = false;
};

// The portable suite: the aligned layers that the claim is made over, then the unaligned ones.
std::vector<std::string> portable_suite();
std::vector<std::string> gemm_forms();

int bench_gemm_cuda(Queue queue, const DeviceInfo& device, const CudaGemmBench& options);

}  // namespace tilewave

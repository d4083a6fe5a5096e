// What the CUDA back end does about errors: a call that fails throws an Error with the expression and CUDA's own words, and leaves
// nothing that the next launch would be blamed for.
#pragma once

#include <cuda_runtime.h>

#include "kernels/core/error.h"

// An expression of type cudaError_t.
#define TW_CUDA(expression)                                                                                     \
  do {                                                                                                          \
    const cudaError_t tw_status = (expression);                                                                 \
    if (tw_status != cudaSuccess) cudaGetLastError();                                                           \
    TW_CHECK(tw_status == cudaSuccess, "CUDA: ", #expression, " failed: ", cudaGetErrorString(tw_status), " (", \
             cudaGetErrorName(tw_status), ").");                                                                \
  } while (false)

// After a launch: what the runtime made of its configuration.
#define TW_CUDA_LAUNCHED(kernel)                                                                                     \
  do {                                                                                                               \
    const cudaError_t tw_status = cudaGetLastError();                                                                \
    TW_CHECK(tw_status == cudaSuccess, "CUDA: launching ", kernel, " failed: ", cudaGetErrorString(tw_status), " (", \
             cudaGetErrorName(tw_status), ").");                                                                     \
  } while (false)

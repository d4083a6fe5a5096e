// NCCL's functions, opened at run time, and ranks that speak through them in one stream. Calls return when their work is in the stream, so
// that a capture has them. Every call of a communicator is made by all of its ranks, in the same order.
//
// Which way bytes take (rings, trees, a switch that adds: NVLink multicast) NCCL decides, by its own environment variables where they are
// set (NCCL_NVLS_ENABLE, NCCL_ALGO, NCCL_DEBUG and so on). None of them is set here.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>
#include <memory>

#include "kernels/core/communicator.h"
#include "kernels/core/dtype.h"

namespace tilewave {

// Open to more than one file: NCCL's own names for what it takes by value or returns.
struct NcclUniqueId {
  char internal[128];
};
using NcclStatus = int;  // ncclResult_t; 0: success

struct NcclFunctions {
  NcclStatus (*get_version)(int*) = nullptr;
  NcclStatus (*get_unique_id)(NcclUniqueId*) = nullptr;
  NcclStatus (*comm_init_rank)(void**, int, NcclUniqueId, int) = nullptr;
  NcclStatus (*comm_destroy)(void*) = nullptr;
  NcclStatus (*comm_abort)(void*) = nullptr;
  NcclStatus (*comm_get_async_error)(void*, NcclStatus*) = nullptr;
  const char* (*get_error_string)(NcclStatus) = nullptr;
  const char* (*get_last_error)(void*) = nullptr;
  NcclStatus (*all_reduce)(const void*, void*, std::size_t, int, int, void*, cudaStream_t) = nullptr;
  NcclStatus (*reduce_scatter)(const void*, void*, std::size_t, int, int, void*, cudaStream_t) = nullptr;
  NcclStatus (*all_gather)(const void*, void*, std::size_t, int, void*, cudaStream_t) = nullptr;
  NcclStatus (*broadcast)(const void*, void*, std::size_t, int, int, void*, cudaStream_t) = nullptr;
};

struct NcclRanks {
  NcclRanks(int device, const NcclId& id, int rank, int count);
  ~NcclRanks();
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  // Error where an earlier call has failed since, or the queue is another GPU's.
  void expect_usable(const CudaQueue& queue, std::string_view operation) const;
  // Error in NCCL's words.
  void expect(NcclStatus status, std::string_view operation) const;

  const NcclFunctions& nccl;
  CudaQueue links;  // the stream that they speak in
  void* communicator = nullptr;
};

// ncclDataType_t of a type, and ncclSum.
int nccl_type(DType dtype);
inline constexpr int kNcclSum = 0;

}  // namespace tilewave

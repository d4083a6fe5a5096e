// What ranks do together. All of them launch the same collectives in the same order, each on tensors of one shape and type.
//   all_reduce      x = sum of all ranks' x, in place, the same bits on every rank
//   reduce_scatter  y = rank's share of the sum of all ranks' x: columns [rank n, (rank + 1) n) of x [1, count n]; y may be those columns
//   all_gather      y = x of rank 0, 1, ... one behind another; x may be this rank's share of y
//   broadcast       x = x of rank `root`
// Rows must follow each other without a gap. Sums run in an order that the library, the number of ranks and the size decide: the same ones
// give the same bits. A rank alone copies, where there is anything to copy. Numbers are of any type; sums on a CPU of
// f32, f64, i32, and of bf16, which are added up in fp32 in the order of ranks and rounded once.
#pragma once

#include <cstdint>

#include "kernels/core/communicator.h"
#include "kernels/core/queue.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"

namespace tilewave {

struct AllReduceArgs {
  static constexpr std::string_view kOperation = "all_reduce";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::other_share};
  MatrixView x;
  Communicator ranks;
};

struct ReduceScatterArgs {
  static constexpr std::string_view kOperation = "reduce_scatter";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::other_share};
  ConstMatrixView x;  // [1, count n]
  MatrixView y;       // [1, n]
  Communicator ranks;
};

struct AllGatherArgs {
  static constexpr std::string_view kOperation = "all_gather";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::other_share};
  ConstMatrixView x;  // [1, n]
  MatrixView y;       // [1, count n]
  Communicator ranks;
};

struct BroadcastArgs {
  static constexpr std::string_view kOperation = "broadcast";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::other_share};
  MatrixView x;
  int root = 0;
  Communicator ranks;
};

// FLOPs are the additions of this rank's share of the sums; bytes what the rank's own memory moves. What goes over the links stands in
// CollectiveWork (kernels/core/trace.h).
Cost cost(const AllReduceArgs& args);
Cost cost(const ReduceScatterArgs& args);
Cost cost(const AllGatherArgs& args);
Cost cost(const BroadcastArgs& args);
TraceEntry trace_entry(const AllReduceArgs& args);
TraceEntry trace_entry(const ReduceScatterArgs& args);
TraceEntry trace_entry(const AllGatherArgs& args);
TraceEntry trace_entry(const BroadcastArgs& args);

void check(const AllReduceArgs& args);
void check(const ReduceScatterArgs& args);
void check(const AllGatherArgs& args);
void check(const BroadcastArgs& args);
void run(CpuQueue& queue, const AllReduceArgs& args);
void run(CpuQueue& queue, const ReduceScatterArgs& args);
void run(CpuQueue& queue, const AllGatherArgs& args);
void run(CpuQueue& queue, const BroadcastArgs& args);
void run(CudaQueue& queue, const AllReduceArgs& args);
void run(CudaQueue& queue, const ReduceScatterArgs& args);
void run(CudaQueue& queue, const AllGatherArgs& args);
void run(CudaQueue& queue, const BroadcastArgs& args);

}  // namespace tilewave

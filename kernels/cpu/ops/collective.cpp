// Collectives of CPU queues, which are MPI's; the definitions stand in kernels/ops/collective.h.
#include "kernels/ops/collective.h"

#include <cstring>

#include "kernels/cpu/core/mpi.h"

namespace tilewave {
namespace {

MpiRanks& ranks_of(std::string_view operation, const Communicator& ranks) {
  TW_CHECK(ranks.mpi != nullptr, operation, ": ", ranks.count,
           " ranks on CPUs speak MPI, and these do not; take those of join_mpi(), or --device "
           "cuda.");
  return *ranks.mpi;
}

void expect_sums(std::string_view operation, DType dtype) {
  TW_CHECK(dtype != DType::f16, operation, ": ranks on CPUs sum f32, f64, bf16 and i32, not ", name_of(dtype),
           "; convert to f32 first, or use --device cuda.");
}

void copy(const ConstMatrixView& x, const MatrixView& y) {
  if (x.data != y.data && y.bytes() > 0) std::memcpy(y.data, x.data, static_cast<std::size_t>(y.bytes()));
}

}  // namespace

void run(CpuQueue&, const AllReduceArgs& args) {
  check(args);
  expect_sums(AllReduceArgs::kOperation, args.x.dtype);
  if (args.ranks.alone()) return;
  ranks_of(AllReduceArgs::kOperation, args.ranks).all_reduce(args.x.data, args.x.rows * args.x.cols, args.x.dtype);
}

void run(CpuQueue&, const ReduceScatterArgs& args) {
  check(args);
  expect_sums(ReduceScatterArgs::kOperation, args.x.dtype);
  if (args.ranks.alone()) return copy(args.x, args.y);
  ranks_of(ReduceScatterArgs::kOperation, args.ranks).reduce_scatter(args.x.data, args.y.data, args.y.cols, args.x.dtype);
}

void run(CpuQueue&, const AllGatherArgs& args) {
  check(args);
  if (args.ranks.alone()) return copy(args.x, args.y);
  ranks_of(AllGatherArgs::kOperation, args.ranks).all_gather(args.x.data, args.y.data, args.x.bytes());
}

void run(CpuQueue&, const BroadcastArgs& args) {
  check(args);
  if (args.ranks.alone()) return;
  ranks_of(BroadcastArgs::kOperation, args.ranks).broadcast(args.x.data, args.x.bytes(), args.root);
}

}  // namespace tilewave

// Collectives of CUDA queues, which are NCCL's; a rank alone needs no NCCL.
#include "kernels/cuda/core/nccl.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"
#include "kernels/ops/collective.h"

namespace tilewave {
namespace {

// call(ranks, stream), in the stream of the ranks, between what the queue holds now and what comes into it later.
template <class Call>
void speak(CudaQueue& queue, std::string_view operation, const Communicator& ranks, const Call& call) {
  TW_CHECK(ranks.nccl != nullptr, operation, ": ", ranks.count,
           " ranks on GPUs speak NCCL, and these do not; take those of join_nccl(), or --device cpu.");
  NcclRanks& own = *ranks.nccl;
  own.expect_usable(queue, operation);
  follow(own.links, queue);
  own.expect(call(own, stream_of(own.links)), operation);
  follow(queue, own.links);
}

// Nobody speaks of nothing.
bool copies(const ConstMatrixView& x, const Communicator& ranks) { return ranks.alone() || x.bytes() == 0; }

void copy(CudaQueue& queue, const ConstMatrixView& x, const MatrixView& y) {
  if (x.data == y.data || y.bytes() == 0) return;
  TW_CUDA(cudaMemcpyAsync(y.data, x.data, static_cast<std::size_t>(y.bytes()), cudaMemcpyDeviceToDevice, stream_of(queue)));
}

std::size_t elements(const ConstMatrixView& view) { return static_cast<std::size_t>(view.rows * view.cols); }

}  // namespace

void run(CudaQueue& queue, const AllReduceArgs& args) {
  constexpr std::string_view kName = AllReduceArgs::kOperation;
  check(args);
  if (copies(args.x, args.ranks)) return;
  speak(queue, kName, args.ranks, [&](const NcclRanks& own, cudaStream_t stream) {
    return own.nccl.all_reduce(args.x.data, args.x.data, elements(args.x), nccl_type(args.x.dtype), kNcclSum, own.communicator, stream);
  });
}

void run(CudaQueue& queue, const ReduceScatterArgs& args) {
  constexpr std::string_view kName = ReduceScatterArgs::kOperation;
  check(args);
  if (copies(args.x, args.ranks)) return copy(queue, args.x, args.y);
  speak(queue, kName, args.ranks, [&](const NcclRanks& own, cudaStream_t stream) {
    return own.nccl.reduce_scatter(args.x.data, args.y.data, elements(args.y), nccl_type(args.x.dtype), kNcclSum, own.communicator, stream);
  });
}

void run(CudaQueue& queue, const AllGatherArgs& args) {
  constexpr std::string_view kName = AllGatherArgs::kOperation;
  check(args);
  if (copies(args.x, args.ranks)) return copy(queue, args.x, args.y);
  speak(queue, kName, args.ranks, [&](const NcclRanks& own, cudaStream_t stream) {
    return own.nccl.all_gather(args.x.data, args.y.data, elements(args.x), nccl_type(args.x.dtype), own.communicator, stream);
  });
}

void run(CudaQueue& queue, const BroadcastArgs& args) {
  constexpr std::string_view kName = BroadcastArgs::kOperation;
  check(args);
  if (copies(args.x, args.ranks)) return;
  speak(queue, kName, args.ranks, [&](const NcclRanks& own, cudaStream_t stream) {
    return own.nccl.broadcast(args.x.data, args.x.data, elements(args.x), nccl_type(args.x.dtype), args.root, own.communicator, stream);
  });
}

}  // namespace tilewave

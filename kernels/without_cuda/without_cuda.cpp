// The CUDA back end's place in a build without it, so that what stands above links and reads alike in every build: no queue of a GPU
// can be made, and what would use one says so.
#include "kernels/core/beside_steps.h"
#include "kernels/core/borrowed_stream.h"
#include "kernels/core/communicator.h"
#include "kernels/core/device.h"
#include "kernels/core/event.h"
#include "kernels/core/graph.h"
#include "kernels/core/memory.h"
#include "kernels/core/queue.h"
#include "kernels/gemm/gemm.h"
#include "kernels/ops/activation.h"
#include "kernels/ops/adamw.h"
#include "kernels/ops/add.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/batch_norm.h"
#include "kernels/ops/collective.h"
#include "kernels/ops/convert.h"
#include "kernels/ops/cross_entropy.h"
#include "kernels/ops/dropout.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/fill.h"
#include "kernels/ops/gradient_norm.h"
#include "kernels/ops/im2col.h"
#include "kernels/ops/layer_norm.h"
#include "kernels/ops/normalize_pixels.h"
#include "kernels/ops/pool.h"
#include "kernels/ops/repeat_heads.h"
#include "kernels/ops/rms_norm.h"
#include "kernels/ops/rope.h"
#include "kernels/ops/silu.h"
#include "kernels/ops/softmax.h"
#include "kernels/ops/squash.h"

namespace tilewave {
namespace {

[[noreturn]] void refuse() {
  throw Error("this build of tilewave has no CUDA kernels; configure with -D TILEWAVE_CUDA=ON where nvcc is, or use --device cpu.");
}

}  // namespace

bool has_cuda() { return false; }
CudaDevices probe_cuda() { return {.usable = {}, .refused = "this build of tilewave has no CUDA kernels."}; }
std::shared_ptr<CudaStream> make_cuda_stream(int) { refuse(); }
void synchronize(CudaQueue&) { refuse(); }

CudaQueue borrow_cuda_stream(int, void*) { refuse(); }
std::uint64_t capture_of(void*) { refuse(); }
void* allocate_unordered(CudaQueue&, std::int64_t) { refuse(); }
void release_unordered(CudaQueue&, void*) noexcept {}
CudaScope::CudaScope(int) { refuse(); }
CudaScope::~CudaScope() = default;

void record(CudaQueue&, std::shared_ptr<CudaEvent>&) { refuse(); }
double seconds_between(const CudaEvent&, const CudaEvent&) { refuse(); }
void wait(const CudaEvent&) { refuse(); }
void push_cuda_range(const char*) { refuse(); }
void pop_cuda_range() {}
Graph capture(CudaQueue&, const std::function<void()>&) { refuse(); }

FoundLibrary find_nccl() {
  return {.path = {}, .version = {}, .refused = "this build of tilewave has no CUDA kernels, whose ranks alone speak NCCL.", .looked = {}};
}
NcclId make_nccl_id() { refuse(); }
Communicator join_nccl(int, const NcclId&, int, int) { refuse(); }
CudaQueue links_of(const Communicator&) { refuse(); }
void follow(CudaQueue&, CudaQueue&) { refuse(); }
QueueMark mark_end(CudaQueue&) { refuse(); }
void follow(CudaQueue&, const QueueMark&) { refuse(); }

std::int64_t free_bytes(CudaQueue&) { refuse(); }
void* allocate(CudaQueue&, std::int64_t) { refuse(); }
std::shared_ptr<void> allocate_staging(CudaQueue&, std::int64_t) { refuse(); }
void release(CudaQueue&, void*) noexcept {}
void copy_to_host(CudaQueue&, void*, const void*, std::int64_t) { refuse(); }
void copy_to_device(CudaQueue&, void*, const void*, std::int64_t) { refuse(); }
void copy_on_device(CudaQueue&, void*, const void*, std::int64_t) { refuse(); }
void fill_bytes(CudaQueue&, void*, int, std::int64_t) { refuse(); }
void copy_rows_to_host(CudaQueue&, void*, const RowsInMemory&) { refuse(); }
void copy_rows_to_device(CudaQueue&, const RowsInMemory&, const void*) { refuse(); }

void fill_normal(CudaQueue&, const MatrixView&, std::uint64_t) { refuse(); }
ErrorNorms error_norms(CudaQueue&, const ConstMatrixView&, const ConstMatrixView&) { refuse(); }
std::vector<RankedColumn> largest_of(CudaQueue&, const RankedRow&, std::int64_t) { refuse(); }

void run(CudaQueue&, const ActivationArgs&) { refuse(); }
void run(CudaQueue&, const ActivationBackwardArgs&) { refuse(); }
void run(CudaQueue&, const AdamWArgs&) { refuse(); }
void run(CudaQueue&, const AddArgs&) { refuse(); }
void run(CudaQueue&, const AllGatherArgs&) { refuse(); }
void run(CudaQueue&, const AllReduceArgs&) { refuse(); }
void run(CudaQueue&, const AttentionArgs&) { refuse(); }
void run(CudaQueue&, const AttentionBackwardArgs&) { refuse(); }
void run(CudaQueue&, const AveragePoolArgs&) { refuse(); }
void run(CudaQueue&, const AveragePoolBackwardArgs&) { refuse(); }
void run(CudaQueue&, const BatchNormArgs&) { refuse(); }
void run(CudaQueue&, const BatchNormBackwardArgs&) { refuse(); }
void run(CudaQueue&, const BroadcastArgs&) { refuse(); }
void run(CudaQueue&, const Col2imArgs&) { refuse(); }
void run(CudaQueue&, const ConvertArgs&) { refuse(); }
void run(CudaQueue&, const CrossEntropyArgs&) { refuse(); }
void run(CudaQueue&, const DropoutArgs&) { refuse(); }
void run(CudaQueue&, const EmbeddingArgs&) { refuse(); }
void run(CudaQueue&, const EmbeddingBackwardArgs&) { refuse(); }
void run(CudaQueue&, const FillArgs&) { refuse(); }
void run(CudaQueue&, const GradientNormArgs&) { refuse(); }
void run(CudaQueue&, const SumOfSquaresArgs&) { refuse(); }
void run(CudaQueue&, const NormOfSquaresArgs&) { refuse(); }
void run(CudaQueue&, const Im2colArgs&) { refuse(); }
void run(CudaQueue&, const LayerNormArgs&) { refuse(); }
void run(CudaQueue&, const LayerNormBackwardArgs&) { refuse(); }
void run(CudaQueue&, const MaxPoolArgs&) { refuse(); }
void run(CudaQueue&, const MaxPoolBackwardArgs&) { refuse(); }
void run(CudaQueue&, const NormalizePixelsArgs&) { refuse(); }
void run(CudaQueue&, const ReduceScatterArgs&) { refuse(); }
void run(CudaQueue&, const RepeatHeadsArgs&) { refuse(); }
void run(CudaQueue&, const RepeatHeadsBackwardArgs&) { refuse(); }
void run(CudaQueue&, const RmsNormArgs&) { refuse(); }
void run(CudaQueue&, const RmsNormBackwardArgs&) { refuse(); }
void run(CudaQueue&, const RopeArgs&) { refuse(); }
void run(CudaQueue&, const SiluArgs&) { refuse(); }
void run(CudaQueue&, const SiluBackwardArgs&) { refuse(); }
void run(CudaQueue&, const SoftmaxArgs&) { refuse(); }
void run(CudaQueue&, const SoftmaxBackwardArgs&) { refuse(); }
void run(CudaQueue&, const SquashArgs&) { refuse(); }
void run(CudaQueue&, const SquashBackwardArgs&) { refuse(); }
void run(CudaQueue&, const GemmArgs&) { refuse(); }

}  // namespace tilewave

// Layer normalisation, backward: by chunks of rows, one way for rows that stay in registers and one for wider ones; a last launch adds up
// the chunks.
#include "kernels/cuda/layer_norm/chunk_backward.h"
#include "kernels/cuda/layer_norm/wide_backward.h"

namespace tilewave {
namespace {

constexpr int kAddThreads = 32;  // of a column; each takes every 32nd chunk

template <class A>
__global__ void __launch_bounds__(kWarp* kAddThreads) add_chunks(const LayerNormBackwardArgs args) {
  constexpr int kMax = static_cast<int>(ceil_div(kLayerNormChunks, kAddThreads));
  __shared__ A sums[kAddThreads][kWarp + 1];
  const MatrixView gradient = blockIdx.y == 0 ? args.dgamma : args.dbeta;
  const std::int64_t column = blockIdx.x * static_cast<std::int64_t>(kWarp) + threadIdx.x, chunks = args.partial.rows / 2;
  const bool owns = column < gradient.cols;

  // Load: all of it is under way at once.
  const A earlier = args.accumulate_parameters && owns && threadIdx.y == 0 ? gradient.row<A>(0)[column] : A(0);
  A parts[kMax];
#pragma unroll
  for (int i = 0; i < kMax; ++i) {
    const std::int64_t chunk = i * kAddThreads + threadIdx.y;
    parts[i] = owns && chunk < chunks ? args.partial.row<A>(2 * chunk + blockIdx.y)[column] : A(0);
  }

  // Reduce.
  A sum = 0;
#pragma unroll
  for (const A& part : parts) sum += part;
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || !owns) return;
  A total = earlier;
#pragma unroll
  for (int i = 0; i < kAddThreads; ++i) total += sums[i][threadIdx.x];

  // Store.
  gradient.row<A>(0)[column] = total;
}

}  // namespace

void run(CudaQueue& queue, const LayerNormBackwardArgs& args) {
  check(args);
  const auto& x = args.x;
  if (x.cols == 0) return;
  with_float(x.dtype, "layer_norm_backward", [&]<class T>(T) {
    const std::int64_t packs = ceil_div(x.cols, kPackWidth<T>), chunk_rows = layer_norm_row_chunk(x.rows);
    const auto chunks = static_cast<unsigned>(args.partial.rows / 2);
    with_whole_access(access_of(kPackWidth<T>, {x, args.gamma, args.dy, args.dx, args.partial}), x.cols, kPackWidth<T>, [&](auto access) {
      if (x.rows > 0 && packs <= kMaxPacks * kChunkThreads) {
        with_group(packs, [&](auto threads) {
          constexpr int kThreads = threads();
          const dim3 block(kThreads, kChunkThreads / kThreads);
          differentiate_chunk<T, kThreads, access()><<<chunks, block, 0, stream_of(queue)>>>(args, chunk_rows);
        });
      } else if (x.rows > 0) {
        differentiate_rows<T, access()><<<static_cast<unsigned>(x.rows), kMaxThreads, 0, stream_of(queue)>>>(args);
        const dim3 blocks(chunks, static_cast<unsigned>(ceil_div(packs, kColumnThreads)));
        sum_chunk<T, access()><<<blocks, kColumnThreads, 0, stream_of(queue)>>>(args, chunk_rows);
      }
    });
    add_chunks<Arithmetic<T>>
        <<<dim3(static_cast<unsigned>(ceil_div(x.cols, kWarp)), 2), dim3(kWarp, kAddThreads), 0, stream_of(queue)>>>(args);
    TW_CUDA_LAUNCHED("layer_norm_backward");
  });
}

}  // namespace tilewave

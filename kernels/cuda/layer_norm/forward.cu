// Layer normalisation, forward: a row is one warp's or one block's, and stays in registers between its passes unless it is very wide.
#include "kernels/cuda/core/rows.h"
#include "kernels/ops/layer_norm.h"

namespace tilewave {
namespace {

template <class T, int kThreads, int kPacks, PackAccess kAccess>
__global__ void __launch_bounds__(RowShape<kThreads, kPacks>::rows* kThreads) layer_norm(const LayerNormArgs args) {
  using A = Arithmetic<T>;
  constexpr int kWidth = kPackWidth<T>;
  __shared__ A scratch[kThreads / kWarp];
  const std::int64_t d = args.x.cols, r = blockIdx.x * static_cast<std::int64_t>(RowShape<kThreads, kPacks>::rows) + threadIdx.y;
  if (r >= args.x.rows) return;

  // Mean, then the squares around it.
  const RowPacks<T, kThreads, kPacks, kAccess> x(args.x.row<T>(r), d);
  A sum = 0, squares = 0;
  x.each_element([&](A value) { sum += value; });
  const A mean = fold_group<kThreads>(sum, scratch, Sum()) / static_cast<A>(d);
  x.each_element([&](A value) { squares = fma(value - mean, value - mean, squares); });
  const A variance = fold_group<kThreads>(squares, scratch, Sum()) / static_cast<A>(d);
  const A rstd = A(1) / sqrt(variance + static_cast<A>(args.epsilon));

  // Store.
  x.each([&](std::int64_t column, const Pack<T>& pack) {
    const Pack<T> gamma = load_pack<kAccess, kWidth>(args.gamma.row<T>(0), column, d);
    const Pack<T> beta = load_pack<kAccess, kWidth>(args.beta.row<T>(0), column, d);
    A y[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      y[i] = fma((load(pack.get(i)) - mean) * rstd, load(gamma.get(i)), load(beta.get(i)));
    }
    store_pack<kAccess>(args.y.row<T>(r), column, d, pack_of<T>(y));
  });
  if (threadIdx.x == 0) {
    *args.mean.row<A>(r) = mean;
    *args.rstd.row<A>(r) = rstd;
  }
}

}  // namespace

void run(CudaQueue& queue, const LayerNormArgs& args) {
  check(args);
  const auto& x = args.x;
  if (x.rows == 0 || x.cols == 0) return;
  with_float(x.dtype, "layer_norm", [&]<class T>(T) {
    with_row_shape(ceil_div(x.cols, kPackWidth<T>), [&](auto shape) {
      with_whole_access(access_of(kPackWidth<T>, {x, args.gamma, args.beta, args.y}), x.cols, kPackWidth<T>, [&](auto access) {
        layer_norm<T, shape.threads, shape.packs, access()>
            <<<static_cast<unsigned>(ceil_div(x.rows, shape.rows)), dim3(shape.threads, shape.rows), 0, stream_of(queue)>>>(args);
      });
    });
    TW_CUDA_LAUNCHED("layer_norm");
  });
}

}  // namespace tilewave

// Dropout, a pack at a time: each of its quads of columns takes one Philox draw, the CPU's bit for bit.
#include "kernels/cuda/core/packs.h"
#include "kernels/math/random.h"
#include "kernels/ops/dropout.h"

namespace tilewave {
namespace {

constexpr int kQuad = 4;

template <class T>
struct Drop {
  static constexpr int kWidth = std::max(kQuad, kPackWidth<T>);
  struct Operands {
    Pack<T, kWidth> x, residual;
  };
  DropoutArgs args;
  std::int64_t cols;
  std::uint32_t threshold;
  Arithmetic<T> scale;

  template <PackAccess kAccess>
  __device__ __forceinline__ Operands load(const Place& at) const {
    Operands operands;
    operands.x = load_pack<kAccess, kWidth>(args.x.row<T>(at.row), at.column, cols);
    if (args.residual) operands.residual = load_pack<kAccess, kWidth>(args.residual.row<T>(at.row), at.column, cols);
    return operands;
  }
  template <PackAccess kAccess>
  __device__ __forceinline__ void store(const Place& at, const Operands& operands) const {
    Arithmetic<T> values[kWidth];
#pragma unroll
    for (int quad = 0; quad < kWidth / kQuad; ++quad) {
      PhiloxCounter draws{};
      if (threshold > 0) {
        draws = dropout_draws(args.state->seed, args.state->step, args.state->place.first_site + args.site, 0,
                              at.row + args.state->place.first_row(args.side), at.column / kQuad + quad);
      }
#pragma unroll
      for (int i = 0; i < kQuad; ++i) {
        const int at_column = kQuad * quad + i;
        const Arithmetic<T> kept = keeps(draws[i], threshold) ? scale : Arithmetic<T>(0);
        const Arithmetic<T> residual = args.residual ? tilewave::load(operands.residual.get(at_column)) : Arithmetic<T>(0);
        const Arithmetic<T> value = kept > 0 ? fma(tilewave::load(operands.x.get(at_column)), kept, residual) : residual;
        values[at_column] = value;
      }
    }
    store_pack<kAccess>(args.y.row<T>(at.row), at.column, cols, pack_of<T>(values));
  }
};

}  // namespace

void run(CudaQueue& queue, const DropoutArgs& args) {
  check(args);
  with_float(args.y.dtype, "dropout", [&]<class T>(T) {
    const Drop<T> body{.args = args,
                       .cols = args.y.cols,
                       .threshold = keep_threshold(args.probability),
                       .scale = static_cast<Arithmetic<T>>(1.0 / (1.0 - args.probability))};
    launch_elementwise(queue, "dropout", body, args.y.rows, access_of(Drop<T>::kWidth, {args.x, args.residual, args.y}));
  });
}

}  // namespace tilewave

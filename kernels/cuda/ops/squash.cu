// Sigmoid and tanh, a pack at a time; the functions stand in kernels/math/squash.h.
#include "kernels/cuda/core/packs.h"
#include "kernels/math/squash.h"
#include "kernels/ops/squash.h"

namespace tilewave {
namespace {

template <class T, Squash kKind>
struct SquashPacks {
  static constexpr int kWidth = kPackWidth<T>;
  using Operands = Pack<T>;
  SquashArgs args;
  std::int64_t cols;

  template <PackAccess kAccess>
  __device__ __forceinline__ Operands load(const Place& at) const {
    return load_pack<kAccess, kWidth>(args.x.row<T>(at.row), at.column, cols);
  }
  template <PackAccess kAccess>
  __device__ __forceinline__ void store(const Place& at, const Operands& pack) const {
    Arithmetic<T> values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[i] = squash(kKind, tilewave::load(pack.get(i)));
    store_pack<kAccess>(args.y.row<T>(at.row), at.column, cols, pack_of<T>(values));
  }
};

template <class T, Squash kKind>
struct SquashPacksBackward {
  static constexpr int kWidth = kPackWidth<T>;
  struct Operands {
    Pack<T> y, dy, dx;
  };
  SquashBackwardArgs args;
  std::int64_t cols;

  template <PackAccess kAccess>
  __device__ __forceinline__ Operands load(const Place& at) const {
    Operands operands;
    operands.y = load_pack<kAccess, kWidth>(args.y.row<T>(at.row), at.column, cols);
    operands.dy = load_pack<kAccess, kWidth>(args.dy.row<T>(at.row), at.column, cols);
    if (args.accumulate) operands.dx = load_pack<kAccess, kWidth>(args.dx.row<const T>(at.row), at.column, cols);
    return operands;
  }
  template <PackAccess kAccess>
  __device__ __forceinline__ void store(const Place& at, const Operands& operands) const {
    using A = Arithmetic<T>;
    A values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const A earlier = args.accumulate ? tilewave::load(operands.dx.get(i)) : A(0);
      values[i] = fma(tilewave::load(operands.dy.get(i)), squash_derivative(kKind, tilewave::load(operands.y.get(i))), earlier);
    }
    store_pack<kAccess>(args.dx.row<T>(at.row), at.column, cols, pack_of<T>(values));
  }
};

// Calls fn with the function as a constant.
template <class Fn>
void with_squash(Squash kind, const Fn& fn) {
  if (kind == Squash::sigmoid) return fn(std::integral_constant<Squash, Squash::sigmoid>{});
  fn(std::integral_constant<Squash, Squash::tanh>{});
}

}  // namespace

void run(CudaQueue& queue, const SquashArgs& args) {
  check(args);
  with_float(args.x.dtype, "squash", [&]<class T>(T) {
    with_squash(args.kind, [&](auto kind) {
      const Extent extent = extent_of(kPackWidth<T>, {args.y, args.x});
      launch_elementwise(queue, "squash", SquashPacks<T, kind()>{.args = args, .cols = extent.cols}, extent.rows, extent.access);
    });
  });
}

void run(CudaQueue& queue, const SquashBackwardArgs& args) {
  check(args);
  with_float(args.y.dtype, "squash_backward", [&]<class T>(T) {
    with_squash(args.kind, [&](auto kind) {
      const Extent extent = extent_of(kPackWidth<T>, {args.dx, args.y, args.dy});
      launch_elementwise(queue, "squash_backward", SquashPacksBackward<T, kind()>{.args = args, .cols = extent.cols}, extent.rows,
                         extent.access);
    });
  });
}

}  // namespace tilewave

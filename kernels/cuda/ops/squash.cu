// Sigmoid and tanh, a pack at a time; the functions stand in kernels/math/squash.h.
#include "kernels/cuda/core/map_packs.h"
#include "kernels/math/squash.h"
#include "kernels/ops/squash.h"

namespace tilewave {
namespace {

template <Squash kKind>
struct SquashFunction {
  template <class A>
  __device__ __forceinline__ static A of(A x) {
    return squash(kKind, x);
  }
  TW_HOST_DEVICE static const ConstMatrixView& saved(const SquashBackwardArgs& args) { return args.y; }
};

template <class T, Squash kKind>
struct SquashBackward : MapPacksBackward<T, SquashFunction<kKind>, SquashBackwardArgs> {
  using Base = MapPacksBackward<T, SquashFunction<kKind>, SquashBackwardArgs>;

  template <PackAccess kAccess>
  __device__ __forceinline__ void store(const Place& at, const typename Base::Operands& operands) const {
    using A = Arithmetic<T>;
    A values[Base::kWidth];
#pragma unroll
    for (int i = 0; i < Base::kWidth; ++i) {
      const A earlier = this->args.accumulate ? tilewave::load(operands.dx.get(i)) : A(0);
      values[i] = fma(tilewave::load(operands.dy.get(i)), squash_derivative(kKind, tilewave::load(operands.saved.get(i))), earlier);
    }
    store_pack<kAccess>(this->args.dx.template row<T>(at.row), at.column, this->cols, pack_of<T>(values));
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
  with_float(args.x.dtype, "squash",
             [&]<class T>(T) { with_squash(args.kind, [&](auto kind) { launch_map<T, SquashFunction<kind()>>(queue, "squash", args); }); });
}

void run(CudaQueue& queue, const SquashBackwardArgs& args) {
  check(args);
  with_float(args.y.dtype, "squash_backward", [&]<class T>(T) {
    with_squash(args.kind, [&](auto kind) { launch_map_backward<SquashBackward<T, kind()>>(queue, "squash_backward", args); });
  });
}

}  // namespace tilewave

// SiLU and SwiGLU's product, a pack at a time; the formulas stand in kernels/ops/silu.h and kernels/math/silu.h.
#include "kernels/cuda/core/packs.h"
#include "kernels/math/silu.h"
#include "kernels/ops/silu.h"

namespace tilewave {
namespace {

template <class T>
struct Silu {
  static constexpr int kWidth = kPackWidth<T>;
  struct Operands {
    Pack<T> x, up;
  };
  SiluArgs args;
  std::int64_t cols;

  template <PackAccess kAccess>
  __device__ __forceinline__ Operands load(const Place& at) const {
    Operands operands;
    operands.x = load_pack<kAccess, kWidth>(args.x.row<T>(at.row), at.column, cols);
    if (args.up) operands.up = load_pack<kAccess, kWidth>(args.up.row<T>(at.row), at.column, cols);
    return operands;
  }
  template <PackAccess kAccess>
  __device__ __forceinline__ void store(const Place& at, const Operands& operands) const {
    Arithmetic<T> values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const Arithmetic<T> up = args.up ? tilewave::load(operands.up.get(i)) : Arithmetic<T>(1);
      values[i] = silu(tilewave::load(operands.x.get(i))) * up;
    }
    store_pack<kAccess>(args.y.row<T>(at.row), at.column, cols, pack_of<T>(values));
  }
};

template <class T>
struct SiluBackward {
  static constexpr int kWidth = kPackWidth<T>;
  struct Operands {
    Pack<T> x, up, dy;
  };
  SiluBackwardArgs args;
  std::int64_t cols;

  template <PackAccess kAccess>
  __device__ __forceinline__ Operands load(const Place& at) const {
    Operands operands;
    operands.x = load_pack<kAccess, kWidth>(args.x.row<T>(at.row), at.column, cols);
    operands.dy = load_pack<kAccess, kWidth>(args.dy.row<T>(at.row), at.column, cols);
    if (args.up) operands.up = load_pack<kAccess, kWidth>(args.up.row<T>(at.row), at.column, cols);
    return operands;
  }
  template <PackAccess kAccess>
  __device__ __forceinline__ void store(const Place& at, const Operands& operands) const {
    using A = Arithmetic<T>;
    A dx[kWidth], dup[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const A x = tilewave::load(operands.x.get(i)), dy = tilewave::load(operands.dy.get(i));
      const A up = args.up ? tilewave::load(operands.up.get(i)) : A(1);
      dx[i] = dy * up * silu_derivative(x);
      dup[i] = dy * silu(x);
    }
    store_pack<kAccess>(args.dx.row<T>(at.row), at.column, cols, pack_of<T>(dx));
    if (args.dup) store_pack<kAccess>(args.dup.row<T>(at.row), at.column, cols, pack_of<T>(dup));
  }
};

}  // namespace

void run(CudaQueue& queue, const SiluArgs& args) {
  check(args);
  with_float(args.x.dtype, "silu", [&]<class T>(T) {
    const Extent extent = extent_of(kPackWidth<T>, {args.y, args.x, args.up});
    launch_elementwise(queue, "silu", Silu<T>{.args = args, .cols = extent.cols}, extent.rows, extent.access);
  });
}

void run(CudaQueue& queue, const SiluBackwardArgs& args) {
  check(args);
  with_float(args.x.dtype, "silu_backward", [&]<class T>(T) {
    const Extent extent = extent_of(kPackWidth<T>, {args.dx, args.x, args.up, args.dy, args.dup});
    launch_elementwise(queue, "silu_backward", SiluBackward<T>{.args = args, .cols = extent.cols}, extent.rows, extent.access);
  });
}

}  // namespace tilewave

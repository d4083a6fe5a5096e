// y = f(x) and its backward pass, a pack at a time. A Function has f and its derivative, of x or of y: what `saved` picks of the arguments.
#pragma once

#include "kernels/core/host_device.h"
#include "kernels/cuda/core/packs.h"

namespace tilewave {

template <class T, class Function, class Args>
struct MapPacks {
  static constexpr int kWidth = kPackWidth<T>;
  using Operands = Pack<T>;
  Args args;
  std::int64_t cols;

  template <PackAccess kAccess>
  __device__ __forceinline__ Operands load(const Place& at) const {
    return load_pack<kAccess, kWidth>(args.x.template row<T>(at.row), at.column, cols);
  }
  template <PackAccess kAccess>
  __device__ __forceinline__ void store(const Place& at, const Operands& pack) const {
    Arithmetic<T> values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[i] = Function::of(tilewave::load(pack.get(i)));
    store_pack<kAccess>(args.y.template row<T>(at.row), at.column, cols, pack_of<T>(values));
  }
};

template <class Element, class F, class Args>
struct MapPacksBackward {
  using T = Element;
  using Function = F;
  static constexpr int kWidth = kPackWidth<T>;
  struct Operands {
    Pack<T> saved, dy, dx;
  };
  Args args;
  std::int64_t cols;

  template <PackAccess kAccess>
  __device__ __forceinline__ Operands load(const Place& at) const {
    Operands operands;
    operands.saved = load_pack<kAccess, kWidth>(Function::saved(args).template row<T>(at.row), at.column, cols);
    operands.dy = load_pack<kAccess, kWidth>(args.dy.template row<T>(at.row), at.column, cols);
    if (args.accumulate) operands.dx = load_pack<kAccess, kWidth>(args.dx.template row<const T>(at.row), at.column, cols);
    return operands;
  }
  template <PackAccess kAccess>
  __device__ __forceinline__ void store(const Place& at, const Operands& operands) const {
    Arithmetic<T> values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const Arithmetic<T> dy = tilewave::load(operands.dy.get(i)), saved = tilewave::load(operands.saved.get(i));
      const Arithmetic<T> earlier = args.accumulate ? tilewave::load(operands.dx.get(i)) : Arithmetic<T>(0);
      values[i] = fma(dy, Function::derivative(saved), earlier);
    }
    store_pack<kAccess>(args.dx.template row<T>(at.row), at.column, cols, pack_of<T>(values));
  }
};

template <class T, class Function, class Args>
void launch_map(CudaQueue& queue, const char* name, const Args& args) {
  const Extent extent = extent_of(kPackWidth<T>, {args.y, args.x});
  launch_elementwise(queue, name, MapPacks<T, Function, Args>{.args = args, .cols = extent.cols}, extent.rows, extent.access);
}

// Packs: MapPacksBackward, or what derives from it.
template <class Packs, class Args>
void launch_map_backward(CudaQueue& queue, const char* name, const Args& args) {
  const Extent extent = extent_of(Packs::kWidth, {args.dx, Packs::Function::saved(args), args.dy});
  launch_elementwise(queue, name, Packs{args, extent.cols}, extent.rows, extent.access);
}

}  // namespace tilewave

// y = a + b, or a copy, a pack at a time.
#include "kernels/cuda/core/packs.h"
#include "kernels/ops/add.h"

namespace tilewave {
namespace {

template <class T>
struct Add {
  static constexpr int kWidth = kPackWidth<T>;
  struct Operands {
    Pack<T> a, b;
  };
  AddArgs args;
  std::int64_t cols;

  template <PackAccess kAccess>
  __device__ __forceinline__ Operands load(const Place& at) const {
    Operands operands;
    operands.a = load_pack<kAccess, kWidth>(args.a.row<T>(at.row), at.column, cols);
    if (args.b) operands.b = load_pack<kAccess, kWidth>(args.b.row<T>(at.row), at.column, cols);
    return operands;
  }
  template <PackAccess kAccess>
  __device__ __forceinline__ void store(const Place& at, Operands& operands) const {
    if (args.b) {
      Arithmetic<T> sums[kWidth];
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sums[i] = tilewave::load(operands.a.get(i)) + tilewave::load(operands.b.get(i));
      operands.a = pack_of<T>(sums);
    }
    store_pack<kAccess>(args.y.row<T>(at.row), at.column, cols, operands.a);
  }
};

}  // namespace

void run(CudaQueue& queue, const AddArgs& args) {
  check(args);
  with_float(args.y.dtype, "add", [&]<class T>(T) {
    const Extent extent = extent_of(Add<T>::kWidth, {args.y, args.a, args.b});
    launch_elementwise(queue, "add", Add<T>{.args = args, .cols = extent.cols}, extent.rows, extent.access);
  });
}

}  // namespace tilewave

// y = value, a pack at a time.
#include "kernels/cuda/core/packs.h"
#include "kernels/ops/fill.h"

namespace tilewave {
namespace {

template <class T>
struct Fill {
  static constexpr int kWidth = kPackWidth<T>;
  struct Operands {};
  MatrixView y;
  std::int64_t cols;
  T value;

  template <PackAccess>
  __device__ __forceinline__ Operands load(const Place&) const {
    return {};
  }
  template <PackAccess kAccess>
  __device__ __forceinline__ void store(const Place& at, const Operands&) const {
    Pack<T> pack{};
#pragma unroll
    for (int i = 0; i < kWidth; ++i) pack.set(i, value);
    store_pack<kAccess>(y.row<T>(at.row), at.column, cols, pack);
  }
};

}  // namespace

void run(CudaQueue& queue, const FillArgs& args) {
  with_float(args.y.dtype, "fill", [&]<class T>(T) {
    const Extent extent = extent_of(Fill<T>::kWidth, {args.y});
    const Fill<T> body{.y = args.y, .cols = extent.cols, .value = T(static_cast<Arithmetic<T>>(args.value))};
    launch_elementwise(queue, "fill", body, extent.rows, extent.access);
  });
}

}  // namespace tilewave

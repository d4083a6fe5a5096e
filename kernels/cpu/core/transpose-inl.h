// Rows become columns in registers: a vector of rows by 16 bytes of each at a time.
#if defined(TILEWAVE_KERNELS_CPU_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TILEWAVE_KERNELS_CPU_TRANSPOSE_INL_H_
#undef TILEWAVE_KERNELS_CPU_TRANSPOSE_INL_H_
#else
#define TILEWAVE_KERNELS_CPU_TRANSPOSE_INL_H_  // NOLINT: toggles for Highway
#endif

#include <cstdint>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// 16 bytes, where there are vectors: a square of them is transposed within each block of a vector.
template <class T>
using Quad = hn::CappedTag<T, 16 / sizeof(T)>;
template <class T>
inline constexpr std::int64_t kSquare = hn::MaxLanes(Quad<T>());

// put(k, the k-th elements of row(0), row(1), ... in a vector) for k below kSquare.
#if HWY_TARGET == HWY_SCALAR
template <class D, class Row, class Put>
HWY_INLINE void transpose_rows(D d, const Row& row, const Put& put) {
  put(0, hn::LoadU(d, row(0)));
}
#else
// Block b of the vector begins row(first + b kSquare).
template <class D, class Row>
HWY_INLINE hn::Vec<D> load_blocks(D d, const Row& row, std::int64_t first) {
  constexpr std::int64_t lanes = hn::MaxLanes(d);
  if constexpr (lanes <= kSquare<hn::TFromD<D> >) {
    return hn::LoadU(d, row(first));
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_blocks(half, row, first + lanes / 2), load_blocks(half, row, first));
  }
}
template <class D, class Row, class Put>
HWY_INLINE void transpose_rows(D d, const Row& row, const Put& put) {
  const auto r0 = load_blocks(d, row, 0), r1 = load_blocks(d, row, 1);
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    put(0, hn::InterleaveLower(d, r0, r1));
    put(1, hn::InterleaveUpper(d, r0, r1));
  } else {
    const auto r2 = load_blocks(d, row, 2), r3 = load_blocks(d, row, 3);
    const auto low02 = hn::InterleaveLower(d, r0, r2), low13 = hn::InterleaveLower(d, r1, r3);
    const auto high02 = hn::InterleaveUpper(d, r0, r2), high13 = hn::InterleaveUpper(d, r1, r3);
    put(0, hn::InterleaveLower(d, low02, low13));
    put(1, hn::InterleaveUpper(d, low02, low13));
    put(2, hn::InterleaveLower(d, high02, high13));
    put(3, hn::InterleaveUpper(d, high02, high13));
  }
}
#endif

}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

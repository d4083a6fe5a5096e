// out[c, r] = factor * in[r, c], four by four elements at a time in registers
// (two by two of eight bytes), the rest one by one.
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

template <class T>
struct Transpose {
  const T* in = nullptr;
  std::int64_t in_ld = 0;
  T* out = nullptr;
  std::int64_t out_ld = 0;
  std::int64_t rows = 0, cols = 0;  // of `in`
  T factor = T(1);
};

#if HWY_TARGET == HWY_SCALAR
template <class T>
inline constexpr std::int64_t kTransposeBlock = 1;

template <class T>
HWY_INLINE void transpose_block(const T* in, std::int64_t, T* out, std::int64_t, T factor) {
  *out = factor * *in;
}
#else
template <class T>
inline constexpr std::int64_t kTransposeBlock = 16 / sizeof(T);

// One square block of 16 bytes by 16 bytes; interleaving twice brings four rows' elements of one column together.
template <class T>
HWY_INLINE void transpose_block(const T* in, std::int64_t in_ld, T* out, std::int64_t out_ld, T factor) {
  const hn::CappedTag<T, kTransposeBlock<T> > d;
  const auto scale = hn::Set(d, factor);
  const auto row = [&](std::int64_t r) HWY_ATTR { return hn::Mul(scale, hn::LoadU(d, in + r * in_ld)); };
  if constexpr (sizeof(T) == 8) {
    const auto row0 = row(0), row1 = row(1);
    hn::StoreU(hn::InterleaveLower(d, row0, row1), d, out);
    hn::StoreU(hn::InterleaveUpper(d, row0, row1), d, out + out_ld);
  } else {
    const auto row0 = row(0), row1 = row(1), row2 = row(2), row3 = row(3);
    const auto lower02 = hn::InterleaveLower(d, row0, row2), upper02 = hn::InterleaveUpper(d, row0, row2);
    const auto lower13 = hn::InterleaveLower(d, row1, row3), upper13 = hn::InterleaveUpper(d, row1, row3);
    hn::StoreU(hn::InterleaveLower(d, lower02, lower13), d, out);
    hn::StoreU(hn::InterleaveUpper(d, lower02, lower13), d, out + out_ld);
    hn::StoreU(hn::InterleaveLower(d, upper02, upper13), d, out + 2 * out_ld);
    hn::StoreU(hn::InterleaveUpper(d, upper02, upper13), d, out + 3 * out_ld);
  }
}
#endif

template <class T>
void transpose(const Transpose<T>& t) {
  constexpr std::int64_t kBlock = kTransposeBlock<T>;
  const std::int64_t block_rows = t.rows / kBlock * kBlock, block_cols = t.cols / kBlock * kBlock;
  for (std::int64_t r = 0; r < block_rows; r += kBlock) {
    for (std::int64_t c = 0; c < block_cols; c += kBlock) {
      transpose_block(t.in + r * t.in_ld + c, t.in_ld, t.out + c * t.out_ld + r, t.out_ld, t.factor);
    }
  }
  for (std::int64_t r = 0; r < t.rows; ++r) {
    for (std::int64_t c = r < block_rows ? block_cols : 0; c < t.cols; ++c) t.out[c * t.out_ld + r] = t.factor * t.in[r * t.in_ld + c];
  }
}

}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

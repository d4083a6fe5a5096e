// C = A B, or C += A B, for matrices that fit the cache: some rows by two vectors of C at a time stay in registers while k runs.
// A is read an element at a time with any strides, so that it may be a transpose; B's and C's rows are contiguous.
// n is a multiple of kLanes.
#if defined(TILEWAVE_KERNELS_CPU_SMALL_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TILEWAVE_KERNELS_CPU_SMALL_PRODUCT_INL_H_
#undef TILEWAVE_KERNELS_CPU_SMALL_PRODUCT_INL_H_
#else
#define TILEWAVE_KERNELS_CPU_SMALL_PRODUCT_INL_H_  // NOLINT: toggles for Highway
#endif

#include <algorithm>
#include <cstdint>
#include <hwy/highway.h>

#include "kernels/cpu/core/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {

inline constexpr std::int64_t kProductRows = HWY_TARGET <= HWY_AVX3 ? 8 : 4;  // two vectors of each, in 32 registers or in 16

template <class T>
struct SmallProduct {
  std::int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  std::int64_t a_row = 0, a_k = 0;  // elements from one row, and from one k, to the next
  const T* b = nullptr;             // [k, n]
  std::int64_t b_ld = 0;
  T* c = nullptr;  // [m, n]
  std::int64_t c_ld = 0;
};

enum class Sums : std::uint8_t { fresh, added };

// kRows rows of C from `row` on, those beyond the last one being it again, and kVectors vectors from `column` on.
template <Sums kSums, std::int64_t kRows, std::int64_t kVectors, class T>
HWY_INLINE void multiply_block(const SmallProduct<T>& p, std::int64_t row, std::int64_t column) {
  const VectorTag<T> d;
  constexpr std::int64_t lanes = hn::MaxLanes(d);
  const std::int64_t rows = std::min(kRows, p.m - row);
  T* const c = p.c + row * p.c_ld + column;
  const T* a[kRows];
  hn::Vec<VectorTag<T> > sum[kRows][kVectors];
  HWY_UNROLL(8)
  for (std::int64_t r = 0; r < kRows; ++r) {
    const std::int64_t at = std::min(r, rows - 1);
    a[r] = p.a + (row + at) * p.a_row;
    HWY_UNROLL(2)
    for (std::int64_t v = 0; v < kVectors; ++v) sum[r][v] = kSums == Sums::added ? hn::LoadU(d, c + at * p.c_ld + v * lanes) : hn::Zero(d);
  }
  const T* b = p.b + column;
  for (std::int64_t k = 0, at = 0; k < p.k; ++k, at += p.a_k, b += p.b_ld) {
    hn::Vec<VectorTag<T> > of_b[kVectors];
    HWY_UNROLL(2)
    for (std::int64_t v = 0; v < kVectors; ++v) of_b[v] = hn::LoadU(d, b + v * lanes);
    HWY_UNROLL(8)
    for (std::int64_t r = 0; r < kRows; ++r) {
      const auto of_a = hn::Set(d, a[r][at]);
      HWY_UNROLL(2)
      for (std::int64_t v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(of_a, of_b[v], sum[r][v]);
    }
  }
  HWY_UNROLL(8)
  for (std::int64_t r = 0; r < kRows; ++r) {
    if (r == rows) break;
    HWY_UNROLL(2)
    for (std::int64_t v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], d, c + r * p.c_ld + v * lanes);
  }
}

template <Sums kSums, std::int64_t kRows, class T>
void multiply_rows(const SmallProduct<T>& p, std::int64_t row) {
  constexpr std::int64_t lanes = hn::MaxLanes(VectorTag<T>());
  std::int64_t column = 0;
  for (; column + 2 * lanes <= p.n; column += 2 * lanes) multiply_block<kSums, kRows, 2>(p, row, column);
  if (column < p.n) multiply_block<kSums, kRows, 1>(p, row, column);
}

template <Sums kSums, class T>
void multiply(const SmallProduct<T>& p) {
  for (std::int64_t row = 0; row < p.m; row += kProductRows) {
    if (p.m - row <= kProductRows / 2) {
      multiply_rows<kSums, kProductRows / 2>(p, row);
    } else {
      multiply_rows<kSums, kProductRows>(p, row);
    }
  }
}
template <class T>
void multiply(Sums sums, const SmallProduct<T>& p) {
  if (sums == Sums::fresh) {
    multiply<Sums::fresh>(p);
  } else {
    multiply<Sums::added>(p);
  }
}

}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

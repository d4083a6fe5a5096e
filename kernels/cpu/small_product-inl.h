// C = A B, or C += A B, for matrices that fit the cache: four rows by two vectors of C at a time stay in registers while k runs.
// A is read an element at a time with any strides, so that it may be a transpose; B's and C's rows are contiguous.
// n is a multiple of kProductColumns. C has room for round_up(m, 4) rows; what the surplus ones hold afterwards is unspecified.
#if defined(TILEWAVE_KERNELS_CPU_SMALL_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TILEWAVE_KERNELS_CPU_SMALL_PRODUCT_INL_H_
#undef TILEWAVE_KERNELS_CPU_SMALL_PRODUCT_INL_H_
#else
#define TILEWAVE_KERNELS_CPU_SMALL_PRODUCT_INL_H_  // NOLINT: toggles for Highway
#endif

#include <algorithm>
#include <cstdint>
#include <hwy/highway.h>

#include "kernels/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {

inline constexpr std::int64_t kProductRows = 4;
inline constexpr std::int64_t kProductColumns = 2 * kLanes;

template <class T>
struct SmallProduct {
  std::int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  std::int64_t a_row = 0, a_k = 0;  // elements from one row, and from one k, to the next
  const T* b = nullptr;             // [k, n]
  T* c = nullptr;                   // [round_up(m, kProductRows), n]
};

enum class Sums : std::uint8_t { fresh, added };

template <Sums kSums, class T>
void multiply(const SmallProduct<T>& p) {
  const VectorTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t row = 0; row < p.m; row += kProductRows) {
    // Rows beyond the last repeat it.
    const T* a0 = p.a + row * p.a_row;
    const T* a1 = p.a + std::min(row + 1, p.m - 1) * p.a_row;
    const T* a2 = p.a + std::min(row + 2, p.m - 1) * p.a_row;
    const T* a3 = p.a + std::min(row + 3, p.m - 1) * p.a_row;
    for (std::int64_t column = 0; column < p.n; column += 2 * lanes) {
      T* c0 = p.c + row * p.n + column;
      T* c1 = c0 + p.n;
      T* c2 = c1 + p.n;
      T* c3 = c2 + p.n;
      const auto start = [&](const T* c) HWY_ATTR { return kSums == Sums::added ? hn::Load(d, c) : hn::Zero(d); };
      auto sum00 = start(c0), sum01 = start(c0 + lanes), sum10 = start(c1), sum11 = start(c1 + lanes);
      auto sum20 = start(c2), sum21 = start(c2 + lanes), sum30 = start(c3), sum31 = start(c3 + lanes);
      const T* b = p.b + column;
      for (std::int64_t k = 0, at = 0; k < p.k; ++k, at += p.a_k, b += p.n) {
        const auto b0 = hn::Load(d, b), b1 = hn::Load(d, b + lanes);
        const auto x0 = hn::Set(d, a0[at]), x1 = hn::Set(d, a1[at]), x2 = hn::Set(d, a2[at]), x3 = hn::Set(d, a3[at]);
        sum00 = hn::MulAdd(x0, b0, sum00);
        sum01 = hn::MulAdd(x0, b1, sum01);
        sum10 = hn::MulAdd(x1, b0, sum10);
        sum11 = hn::MulAdd(x1, b1, sum11);
        sum20 = hn::MulAdd(x2, b0, sum20);
        sum21 = hn::MulAdd(x2, b1, sum21);
        sum30 = hn::MulAdd(x3, b0, sum30);
        sum31 = hn::MulAdd(x3, b1, sum31);
      }
      hn::Store(sum00, d, c0);
      hn::Store(sum01, d, c0 + lanes);
      hn::Store(sum10, d, c1);
      hn::Store(sum11, d, c1 + lanes);
      hn::Store(sum20, d, c2);
      hn::Store(sum21, d, c2 + lanes);
      hn::Store(sum30, d, c3);
      hn::Store(sum31, d, c3 + lanes);
    }
  }
}

}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

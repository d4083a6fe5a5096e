// Vector arithmetic shared by the CPU's operations, compiled once for each SIMD target (Highway's foreach_target).
// Reductions over a row keep kLanes partial results, one for each column modulo kLanes, and fold them in a fixed order: the
// result depends on the logical columns alone, not on pitch, alignment or the width of a vector.
#if defined(TILEWAVE_KERNELS_CPU_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TILEWAVE_KERNELS_CPU_VECTOR_MATH_INL_H_
#undef TILEWAVE_KERNELS_CPU_VECTOR_MATH_INL_H_
#else
#define TILEWAVE_KERNELS_CPU_VECTOR_MATH_INL_H_  // NOLINT: toggles for Highway
#endif

#include <algorithm>
#include <cstdint>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
#include <limits>
#include <type_traits>

#include "kernels/math/random.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::int64_t kLanes = 16;

// A vector of at most kLanes elements; its length divides kLanes.
template <class T>
using VectorTag = hn::CappedTag<T, static_cast<std::size_t>(kLanes)>;

// The partial results become one: halves are combined until one is left.
template <std::int64_t kWidth = kLanes / 2, class T, class Combine>
HWY_INLINE T fold_lanes(T* lanes, const Combine& combine) {
  for (std::int64_t lane = 0; lane < kWidth; ++lane) lanes[lane] = combine(lanes[lane], lanes[lane + kWidth]);
  if constexpr (kWidth == 1) {
    return lanes[0];
  } else {
    return fold_lanes<kWidth / 2>(lanes, combine);
  }
}

// combine over term(c), c in [0, n).
template <class T, class Term, class Combine>
HWY_INLINE T reduce_lanes(std::int64_t n, T identity, const Term& term, const Combine& combine) {
  T lanes[kLanes];
  std::fill_n(lanes, kLanes, identity);
  std::int64_t c = 0;
  for (; c + kLanes <= n; c += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = combine(lanes[lane], term(c + lane));
  }
  for (std::int64_t lane = 0; c + lane < n; ++lane) lanes[lane] = combine(lanes[lane], term(c + lane));
  return fold_lanes(lanes, combine);
}

template <class T, class Term>
HWY_INLINE T sum_of(std::int64_t n, const Term& term) {
  return reduce_lanes(n, T(0), term, [](T a, T b) { return a + b; });
}

template <class T, class Term>
HWY_INLINE T max_of(std::int64_t n, const Term& term) {
  return reduce_lanes(n, -std::numeric_limits<T>::infinity(), term, [](T a, T b) { return b > a ? b : a; });
}

// exp; Highway's, except that a NaN stays one.
template <class D, class V>
HWY_INLINE V exp_of(D d, V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

// The sum over c in [0, n) of exp(x[c] - shift); each term is stored in `terms` (which may be x) unless that is null.
template <class T>
HWY_INLINE T sum_of_exp(const T* x, std::int64_t n, T shift, T* terms) {
  const VectorTag<T> d;
  const auto lanes_of_vector = static_cast<std::int64_t>(hn::Lanes(d));
  T lanes[kLanes] = {}, block[kLanes];
  for (std::int64_t c = 0; c < n; c += kLanes) {
    const std::int64_t columns = std::min(kLanes, n - c);
    const bool whole = columns == kLanes;
    if (!whole) std::fill(std::copy_n(x + c, columns, block), block + kLanes, -std::numeric_limits<T>::infinity());
    const T* source = whole ? x + c : block;
    T* target = whole && terms != nullptr ? terms + c : block;
    for (std::int64_t lane = 0; lane < kLanes; lane += lanes_of_vector) {
      const auto term = exp_of(d, hn::Sub(hn::LoadU(d, source + lane), hn::Set(d, shift)));
      hn::StoreU(hn::Add(hn::LoadU(d, lanes + lane), term), d, lanes + lane);
      hn::StoreU(term, d, target + lane);
    }
    if (!whole && terms != nullptr) std::copy_n(block, columns, terms + c);
  }
  return fold_lanes(lanes, [](T a, T b) { return a + b; });
}

// dropout_draws() of math/random.h for a run of rows at one quad of columns, or of quads along one row.
enum class Along : std::uint8_t { rows, column_quads };
struct DrawRun {
  std::uint64_t key = 0;
  std::uint32_t site = 0, plane = 0;
  std::int64_t row = 0, column_quad = 0;  // the first
  Along along = Along::column_quads;
};

// draws[4 i + w] is word w of the run's i-th quad, i in [0, count); count is a multiple of kLanes.
inline void draw(const DrawRun& run, std::int64_t count, std::uint32_t* draws) {
  const hn::CappedTag<std::uint64_t, static_cast<std::size_t>(kLanes)> d;  // each lane's lower half holds a word
  const auto lower = hn::Set(d, std::uint64_t{0xffffffffu});
  const auto product = [&](auto word, std::uint32_t multiplier) HWY_ATTR {
#if HWY_TARGET == HWY_SCALAR
    return hn::Mul(hn::And(word, lower), hn::Set(d, std::uint64_t{multiplier}));
#else
    const hn::Repartition<std::uint32_t, std::remove_const_t<decltype(d)> > halves;
    return hn::MulEven(hn::BitCast(halves, word), hn::Set(halves, multiplier));
#endif
  };
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < count; i += step) {
    const bool rows = run.along == Along::rows;
    auto word0 = rows ? hn::Iota(d, static_cast<std::uint64_t>(run.row + i)) : hn::Set(d, static_cast<std::uint64_t>(run.row));
    auto word1 =
        rows ? hn::Set(d, static_cast<std::uint64_t>(run.column_quad)) : hn::Iota(d, static_cast<std::uint64_t>(run.column_quad + i));
    auto word2 = hn::Set(d, std::uint64_t{run.site});
    auto word3 = hn::Set(d, std::uint64_t{run.plane});
    auto key0 = static_cast<std::uint32_t>(run.key), key1 = static_cast<std::uint32_t>(run.key >> 32);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      const auto product0 = product(word0, kPhiloxMultiplier0), product1 = product(word2, kPhiloxMultiplier1);
      word0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), word1), hn::Set(d, std::uint64_t{key0}));
      word2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), word3), hn::Set(d, std::uint64_t{key1}));
      word1 = product1;
      word3 = product0;
      key0 += kPhiloxWeyl0;
      key1 += kPhiloxWeyl1;
    }
    const auto words01 = hn::Or(hn::And(word0, lower), hn::ShiftLeft<32>(word1));
    const auto words23 = hn::Or(hn::And(word2, lower), hn::ShiftLeft<32>(word3));
    hn::StoreInterleaved2(words01, words23, d, reinterpret_cast<std::uint64_t*>(draws + 4 * i));
  }
}

}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

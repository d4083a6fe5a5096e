// packed_pairs on a CPU: bf16 operands, fp32 sums, bf16 or f32 results. The one file with an instruction that Highway 1.0.3 does
// not offer: VDPBF16PS behind a target attribute, asked for at run time. Each output is summed by one thread in the order of K,
// two neighbours at a time.
#include "kernels/gemm/rows/packed_pairs.h"

#include <algorithm>
#include <bit>

#include "kernels/cpu/gemm/launch.h"
#include "kernels/gemm.h"
#include "kernels/math/activation.h"
#include "kernels/queue.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tilewave {

bool cpu_multiplies_bf16_pairs() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0 && __builtin_cpu_supports("avx512f") != 0;
  return has;
#else
  return false;
#endif
}

#if defined(__x86_64__)
namespace {

using Pair = std::uint32_t;  // two neighbours along K, the first in the lower half

// One operand as rows along i (or j), whatever its major was.
struct Rows {
  const bf16* data = nullptr;
  std::int64_t row_stride = 0, k_stride = 0, k = 0;

  std::uint32_t bits(std::int64_t row, std::int64_t at) const { return at < k ? data[row * row_stride + at * k_stride].bits : 0u; }
  Pair pair(std::int64_t row, std::int64_t index) const { return bits(row, 2 * index) | bits(row, 2 * index + 1) << 16; }
};

Rows rows_of(const ConstMatrixView& view, Major major) {
  const bool along_k = major == Major::k;
  return {.data = view.row<bf16>(0),
          .row_stride = along_k ? view.ld : 1,
          .k_stride = along_k ? 1 : view.ld,
          .k = along_k ? view.cols : view.rows};
}

// panels[panel][pair][r] = the pair of row first + panel * kWidth + r, zeros beyond the last row.
template <std::int64_t kWidth>
void pack(const Rows& operand, std::int64_t first, std::int64_t rows, std::int64_t pairs, Pair* panels) {
  for (std::int64_t panel = 0; panel < rows; panel += kWidth, panels += kWidth * pairs) {
    const std::int64_t some = std::min(kWidth, rows - panel);
    for (std::int64_t r = 0; r < kWidth; ++r) {
      for (std::int64_t index = 0; index < pairs; ++index)
        panels[index * kWidth + r] = r < some ? operand.pair(first + panel + r, index) : Pair{0};
    }
  }
}

constexpr std::int64_t kVector = 16;

// sums[column][lane] = sum over k of i(k, lane) j(k, column).
__attribute__((target("avx512f,avx512bf16"))) void multiply(const Pair* i, const Pair* j, std::int64_t pairs, float* sums) {
  __m512 sum[kPairsAlongJ][2];
#pragma GCC unroll 12
  for (auto& column : sum) column[0] = column[1] = _mm512_setzero_ps();
  for (std::int64_t at = 0; at < pairs; ++at, i += kPairsAlongI, j += kPairsAlongJ) {
    const auto low = reinterpret_cast<__m512bh>(_mm512_loadu_si512(i));
    const auto high = reinterpret_cast<__m512bh>(_mm512_loadu_si512(i + kVector));
#pragma GCC unroll 12
    for (std::int64_t column = 0; column < kPairsAlongJ; ++column) {
      const auto along_j = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(j[column])));
      sum[column][0] = _mm512_dpbf16_ps(sum[column][0], low, along_j);
      sum[column][1] = _mm512_dpbf16_ps(sum[column][1], high, along_j);
    }
  }
#pragma GCC unroll 12
  for (std::int64_t column = 0; column < kPairsAlongJ; ++column) {
    _mm512_storeu_ps(sums + column * kPairsAlongI, sum[column][0]);
    _mm512_storeu_ps(sums + column * kPairsAlongI + kVector, sum[column][1]);
  }
}

// The formula of kernels/gemm.h for `count` neighbours in one row of D, whose type is T.
template <class T>
void finish_row(const GemmArgs& args, std::int64_t row, std::int64_t col, std::int64_t count, const float* sums) {
  const auto at = [&](const ConstMatrixView& view, std::int64_t r, std::int64_t c) { return static_cast<float>(view.row<T>(r)[c]); };
  for (std::int64_t x = 0; x < count; ++x) {
    float z = sums[x];
    if (args.bias) z += at(args.bias, 0, args.d_major == Major::m ? col + x : row);
    if (args.saved_input) args.saved_input.row<T>(row)[col + x] = static_cast<T>(z);
    z = activate(args.activation, z);
    if (args.derivative_of) z *= activation_derivative(args.derivative, at(args.derivative_of, row, col + x));
    if (args.residual) z += at(args.residual, row, col + x);
    if (args.accumulate) z += at(args.d, row, col + x);
    args.d.row<T>(row)[col + x] = static_cast<T>(z);
  }
}

template <class T>
void sum_bias_gradient(const GemmArgs& args, const Rows& b, std::int64_t first, std::int64_t rows) {
  T* out = args.bias_gradient.row<T>(0);
  for (std::int64_t n = first; n < first + rows; ++n) {
    float sum = 0.0F;
    for (std::int64_t k = 0; k < b.k; ++k) sum += std::bit_cast<float>(b.bits(n, k) << 16);
    out[n] = static_cast<T>(args.accumulate_bias_gradient ? static_cast<float>(out[n]) + sum : sum);
  }
}

template <class T>
void launch(CpuQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  const PairsLayout layout(problem_of(args), plan.tile);
  const bool swapped = args.d_major == Major::n;
  const Rows a = rows_of(args.a, args.a_major), b = rows_of(args.b, args.b_major);
  const Rows &along_i = swapped ? b : a, &along_j = swapped ? a : b;
  const std::int64_t tiles_i = ceil_div(args.d.cols, layout.tile_i), tiles = plan.tiling.tiles;
  const TileLoop loop{.tiles = tiles, .multiply_adds = args.d.rows * args.d.cols * along_i.k, .threads = plan.tiling.slots};
  for_each_tile(queue, loop, [&](std::int64_t tile, int thread) {
    Pair* const panels_i = static_cast<Pair*>(args.workspace) + thread * (layout.panels_i + layout.panels_j);
    Pair* const panels_j = panels_i + layout.panels_i;
    alignas(64) float sums[kPairsAlongI * kPairsAlongJ];
    // Pack.
    const std::int64_t first_i = tile % tiles_i * layout.tile_i, first_j = tile / tiles_i * layout.tile_j;
    const std::int64_t rows_i = std::min(layout.tile_i, args.d.cols - first_i), rows_j = std::min(layout.tile_j, args.d.rows - first_j);
    pack<kPairsAlongI>(along_i, first_i, rows_i, layout.pairs, panels_i);
    pack<kPairsAlongJ>(along_j, first_j, rows_j, layout.pairs, panels_j);
    if (args.bias_gradient && (swapped ? first_j : first_i) == 0) {
      sum_bias_gradient<T>(args, b, swapped ? first_i : first_j, swapped ? rows_i : rows_j);
    }
    // Multiply, finish.
    for (std::int64_t i = 0; i < rows_i; i += kPairsAlongI) {
      for (std::int64_t j = 0; j < rows_j; j += kPairsAlongJ) {
        multiply(panels_i + i * layout.pairs, panels_j + j * layout.pairs, layout.pairs, sums);
        for (std::int64_t column = 0; column < std::min(kPairsAlongJ, rows_j - j); ++column) {
          finish_row<T>(args, first_j + j + column, first_i + i, std::min(kPairsAlongI, rows_i - i), sums + column * kPairsAlongI);
        }
      }
    }
  });
}

}  // namespace

void launch_packed_pairs(CpuQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  check_one_type(args, "packed_pairs");
  if (args.d.dtype == DType::f32) {
    launch<float>(queue, args, plan);
  } else {
    launch<bf16>(queue, args, plan);
  }
}
#else
void launch_packed_pairs(CpuQueue&, const GemmArgs&, const GemmPlan&) { throw Error("packed_pairs: this CPU has no AVX512-BF16."); }
#endif

}  // namespace tilewave

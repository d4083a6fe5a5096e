// packed_pairs on a CPU: bf16 operands, fp32 sums, bf16 or f32 results. Its instruction is one that Highway 1.0.3 does
// not offer: VDPBF16PS behind a target attribute, asked for at run time. Each output is summed by one thread in the order of K,
// two neighbours at a time.
#include "kernels/gemm/cpu/packed_pairs.h"

#include <algorithm>
#include <cstring>

#include "kernels/core/queue.h"
#include "kernels/cpu/gemm/launch.h"
#include "kernels/gemm/gemm.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/cpu/gemm/finish_row.h"
#endif

namespace tilewave {

bool cpu_multiplies_bf16_pairs() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0 && __builtin_cpu_supports("avx512bw") != 0;
  return has;
#else
  return false;
#endif
}

#if defined(__x86_64__)
namespace {

#define TILEWAVE_WITH_PAIRS __attribute__((target("avx512f,avx512bw,avx512bf16")))

using Pair = std::uint32_t;  // two neighbours along K, the first in the lower half

using Rows = OperandRows<bf16>;

// panel[pair][r] = the pair of row first + r, for r < rows, of pairs [begin, end).
template <std::int64_t kWidth>
TILEWAVE_WITH_PAIRS void pack_pairs(const Rows& operand, std::int64_t first, std::int64_t rows, std::int64_t begin, std::int64_t end,
                                    Pair* panel) {
  if (operand.k_stride == 1) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const bf16* const from = operand.at(first + r, 0);
      for (std::int64_t pair = begin; pair < end; ++pair) std::memcpy(panel + pair * kWidth + r, from + 2 * pair, sizeof(Pair));
    }
    return;
  }
  for (std::int64_t pair = begin; pair < end; ++pair) {
    const bf16 *const low = operand.at(first, 2 * pair), *const high = operand.at(first, 2 * pair + 1);
    Pair* const to = panel + pair * kWidth;
    for (std::int64_t r = 0; r < rows; ++r) to[r] = low[r].bits | Pair{high[r].bits} << 16;
  }
}

constexpr std::int64_t kPairsOfALine = 64 / sizeof(Pair);

// panels[panel][pair][r] = the pair of row first + panel * kWidth + r, zeros beyond the last row and the last step of K.
template <std::int64_t kWidth>
void pack(const Rows& operand, std::int64_t first, std::int64_t rows, std::int64_t pairs, Pair* panels) {
  for (std::int64_t panel = 0; panel < rows; panel += kWidth, panels += kWidth * pairs) {
    const std::int64_t some = std::min(kWidth, rows - panel), whole = operand.k / 2;
    if (some < kWidth || whole < pairs) std::fill_n(panels, kWidth * pairs, Pair{0});
    for (std::int64_t pair = 0; pair < whole; pair += kPairsOfALine)
      pack_pairs<kWidth>(operand, first + panel, some, pair, std::min(whole, pair + kPairsOfALine), panels);
    for (std::int64_t r = 0; whole < pairs && r < some; ++r) panels[whole * kWidth + r] = operand.at(first + panel + r, 2 * whole)->bits;
  }
}

constexpr std::int64_t kVector = 16;

// sums[column][lane] = sum over k of i(k, lane) j(k, column).
TILEWAVE_WITH_PAIRS void multiply(const Pair* i, const Pair* j, std::int64_t pairs, float* sums) {
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

template <class T>
void sum_bias_gradient(const GemmArgs& args, const Rows& b, std::int64_t first, std::int64_t rows) {
  T* out = args.bias_gradient.row<T>(0);
  for (std::int64_t n = first; n < first + rows; ++n) {
    float sum = 0.0F;
    for (std::int64_t k = 0; k < b.k; ++k) sum += static_cast<float>(*b.at(n, k));
    out[n] = static_cast<T>(args.accumulate_bias_gradient ? static_cast<float>(out[n]) + sum : sum);
  }
}

template <class T>
void launch(CpuQueue& queue, const GemmCall& call) {
  const GemmArgs& args = call.args;
  const PairsLayout layout(call.problem, call.plan.tile);
  const bool swapped = args.d_major == Major::n;
  const Rows a = rows_of<bf16>(args.a, args.a_major), b = rows_of<bf16>(args.b, args.b_major);
  const Rows &along_i = swapped ? b : a, &along_j = swapped ? a : b;
  const TileGrid& grid = layout.grid;
  const TileLoop loop{.grid = grid, .multiply_adds = args.d.rows * args.d.cols * along_i.k, .threads = call.plan.tiling.slots};
  for_each_tile(queue, loop, [&](std::int64_t tile, int thread) {
    Pair* const panels_i = static_cast<Pair*>(args.workspace) + thread * (layout.panels_i + layout.panels_j);
    Pair* const panels_j = panels_i + layout.panels_i;
    alignas(64) float sums[kPairsAlongI * kPairsAlongJ];
    // Pack.
    const std::int64_t first_i = tile % grid.tiles_i() * grid.tile_i, first_j = tile / grid.tiles_i() * grid.tile_j;
    const std::int64_t rows_i = std::min(grid.tile_i, grid.i - first_i), rows_j = std::min(grid.tile_j, grid.j - first_j);
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

void launch_packed_pairs(CpuQueue& queue, const GemmCall& call) {
  check_one_type(call.args, "packed_pairs");
  if (call.args.d.dtype == DType::f32) {
    launch<float>(queue, call);
  } else {
    launch<bf16>(queue, call);
  }
}
#else
void launch_packed_pairs(CpuQueue&, const GemmArgs&, const GemmPlan&) { throw Error("packed_pairs: this CPU has no AVX512-BF16."); }
#endif

}  // namespace tilewave

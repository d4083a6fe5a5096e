// amx_tiles on a CPU: f32 or bf16 operands, fp32 sums, f32 or bf16 results. A panel holds 32 rows of an operand as tile registers want
// them, 32 steps of K at a time, an f32 operand's three parts one after another. For each block of K a tile's panels along i stay in the
// second-level cache while those along j pass by; a register tile of 2 x 2 tile registers meets all parts of both. Sums wait in the
// workspace between blocks; the last block's meet the epilogue, or go straight to D. Each output is summed in the order of K by one
// thread: neither threads nor tiles change a bit.
#include "kernels/gemm/rows/amx_tiles.h"

#include <algorithm>
#include <cstring>
#include <sys/syscall.h>
#include <type_traits>
#include <unistd.h>

#include "kernels/cpu/gemm/finish_row.h"
#include "kernels/cpu/gemm/launch.h"
#include "kernels/cpu/gemm/prefetch.h"
#include "kernels/gemm.h"
#include "kernels/queue.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/amx_tiles.cpp"  // NOLINT
#include <hwy/foreach_target.h>                              // NOLINT: includes this file once a target
#include <hwy/highway.h>

#include "kernels/cpu/gemm/frame-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {
namespace {

void finish_f32(const GemmArgs& args, const Outputs& outputs, const float* sums, std::int64_t ld) { finish(args, outputs, sums, ld); }

}  // namespace
}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#define TILEWAVE_WITH_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define TILEWAVE_WITH_AMX __attribute__((target("amx-tile,amx-bf16")))

namespace tilewave {
namespace {

HWY_EXPORT(finish_f32);

constexpr std::int64_t kRegisterRows = 16;                  // of a tile register: 64 bytes each
constexpr std::int64_t kPartBytes = 2 * kAmxRegisterBytes;  // of a panel's 32 rows and 32 steps

// One operand as rows along i (or j), whatever its major was.
template <class T>
struct Rows {
  const T* data = nullptr;
  std::int64_t row_stride = 0, k_stride = 0;  // one of them is 1
  std::int64_t rows = 0, k = 0;

  const T* at(std::int64_t row, std::int64_t step) const { return data + row * row_stride + step * k_stride; }
};

template <class T>
Rows<T> rows_of(const ConstMatrixView& view, Major major) {
  const bool along_k = major == Major::k;
  return {.data = view.row<T>(0),
          .row_stride = along_k ? view.ld : 1,
          .k_stride = along_k ? 1 : view.ld,
          .rows = along_k ? view.rows : view.cols,
          .k = along_k ? view.cols : view.rows};
}

// How a tile register wants 16 rows and 32 steps of K: along i a line is two steps of 16 rows, along j 32 steps of one row.
enum class Lines : std::uint8_t { of_steps, of_rows };

// ---- Packing.

// x = high + middle + low, each a bf16 in the upper half of its lane. Halves are rounded away from zero, so that what is left has at most
// as many bits as the parts below can take.
struct Split {
  __m512 high, middle, low;
};
TILEWAVE_WITH_AVX512 inline __m512 nearest_bf16(__m512 x) {
  const __m512i bits = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
  return _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(static_cast<int>(0xffff0000U))));
}
TILEWAVE_WITH_AVX512 inline Split split(__m512 x) {
  const __m512 high = nearest_bf16(x), rest = _mm512_sub_ps(x, high), middle = nearest_bf16(rest);
  return {.high = high, .middle = middle, .low = _mm512_sub_ps(rest, middle)};
}

TILEWAVE_WITH_AVX512 inline __mmask16 first_lanes(std::int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<std::int64_t>(count, 0, 16)) - 1U);
}

// Lanes of `first` in the lower halves, of `second` in the upper ones; both have bf16 in their upper halves alone.
TILEWAVE_WITH_AVX512 inline __m512i pairs(__m512 first, __m512 second) {
  return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(first), 16), _mm512_castps_si512(second));
}
// The 32 neighbours of two vectors, likewise.
TILEWAVE_WITH_AVX512 inline __m512i neighbours(__m512 first, __m512 second) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
}
TILEWAVE_WITH_AVX512 inline void store_parts(const Split& first, const Split& second, char* out, __m512i (*join)(__m512, __m512)) {
  _mm512_store_si512(out, join(first.high, second.high));
  _mm512_store_si512(out + kPartBytes, join(first.middle, second.middle));
  _mm512_store_si512(out + 2 * kPartBytes, join(first.low, second.low));
}

// Transposes 16 lines of 16 words in place: lines of steps become lines of rows, and the other way round.
TILEWAVE_WITH_AVX512 void turn(char* block) {
  __m512i line[16], other[16];
  for (int r = 0; r < 16; ++r) line[r] = _mm512_load_si512(block + 64 * r);
#pragma GCC unroll 8
  for (int r = 0; r < 16; r += 2) {
    other[r] = _mm512_unpacklo_epi32(line[r], line[r + 1]);
    other[r + 1] = _mm512_unpackhi_epi32(line[r], line[r + 1]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < 16; r += 4) {
    line[r] = _mm512_unpacklo_epi64(other[r], other[r + 2]);
    line[r + 1] = _mm512_unpackhi_epi64(other[r], other[r + 2]);
    line[r + 2] = _mm512_unpacklo_epi64(other[r + 1], other[r + 3]);
    line[r + 3] = _mm512_unpackhi_epi64(other[r + 1], other[r + 3]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {  // line[4 q + r] has words r, 4 + r, 8 + r, 12 + r of lines 4 q to 4 q + 3, a quarter each
    other[r] = _mm512_shuffle_i32x4(line[r], line[4 + r], 0x88);
    other[4 + r] = _mm512_shuffle_i32x4(line[r], line[4 + r], 0xdd);
    other[8 + r] = _mm512_shuffle_i32x4(line[8 + r], line[12 + r], 0x88);
    other[12 + r] = _mm512_shuffle_i32x4(line[8 + r], line[12 + r], 0xdd);
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    _mm512_store_si512(block + 64 * r, _mm512_shuffle_i32x4(other[r], other[8 + r], 0x88));
    _mm512_store_si512(block + 64 * (4 + r), _mm512_shuffle_i32x4(other[4 + r], other[12 + r], 0x88));
    _mm512_store_si512(block + 64 * (8 + r), _mm512_shuffle_i32x4(other[r], other[8 + r], 0xdd));
    _mm512_store_si512(block + 64 * (12 + r), _mm512_shuffle_i32x4(other[4 + r], other[12 + r], 0xdd));
  }
}

// A block of at most 16 rows and 32 steps, from `data` on.
struct Block {
  std::int64_t rows = 0, steps = 0;
};

// Lines of rows from an operand whose steps are neighbours.
TILEWAVE_WITH_AVX512 void pack_rows(const float* data, std::int64_t stride, const Block& block, char* out) {
  const __mmask16 first = first_lanes(block.steps), second = first_lanes(block.steps - 16);
  for (std::int64_t r = 0; r < block.rows; ++r, data += stride, out += 64) {
    _mm_prefetch(data + kAmxSteps, _MM_HINT_T0);  // of the next steps
    _mm_prefetch(data + kAmxSteps + 16, _MM_HINT_T0);
    const __m512 low = _mm512_maskz_loadu_ps(first, data), high = _mm512_maskz_loadu_ps(second, data + 16);
    store_parts(split(low), split(high), out, neighbours);
  }
}
TILEWAVE_WITH_AVX512 void pack_rows(const bf16* data, std::int64_t stride, const Block& block, char* out) {
  const auto lanes = static_cast<__mmask32>((std::uint64_t{1} << block.steps) - 1);
  for (std::int64_t r = 0; r < block.rows; ++r, data += stride, out += 64) _mm512_store_si512(out, _mm512_maskz_loadu_epi16(lanes, data));
}

TILEWAVE_WITH_AVX512 inline __m512 load_f32(const float* from, __mmask16 lanes) { return _mm512_maskz_loadu_ps(lanes, from); }
TILEWAVE_WITH_AVX512 inline __m512 load_f32(const bf16* from, __mmask16 lanes) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, from)), 16));
}

// Lines of steps from an operand whose rows are neighbours.
template <class T>
TILEWAVE_WITH_AVX512 void pack_steps(const T* data, std::int64_t stride, const Block& block, char* out) {
  const __mmask16 rows = first_lanes(block.rows);
  for (std::int64_t step = 0; step < block.steps; step += 2, data += 2 * stride, out += 64) {
    _mm_prefetch(data + kAmxPanel, _MM_HINT_T0);  // of the next panel
    _mm_prefetch(data + stride + kAmxPanel, _MM_HINT_T0);
    const __m512 first = load_f32(data, rows);
    const __m512 second = step + 1 < block.steps ? load_f32(data + stride, rows) : _mm512_setzero_ps();
    if constexpr (std::is_same_v<T, float>) {
      store_parts(split(first), split(second), out, pairs);
    } else {
      _mm512_store_si512(out, pairs(first, second));
    }
  }
}

// The panel of rows [first, first + rows) for steps [first_k, first_k + steps), zeros beyond both.
template <Lines kLines, class T>
void pack_panel(const Rows<T>& operand, std::int64_t first, std::int64_t rows, std::int64_t first_k, std::int64_t steps, char* panel) {
  constexpr int kParts = std::is_same_v<T, float> ? 3 : 1;
  const bool steps_are_neighbours = operand.k_stride == 1;
  for (std::int64_t k = 0; k < steps; k += kAmxSteps, panel += kParts * kPartBytes) {
    for (std::int64_t half = 0; half < 2; ++half) {
      const std::int64_t skipped = half * kRegisterRows;
      const Block block = {.rows = std::min(rows - skipped, kRegisterRows), .steps = std::min(steps - k, kAmxSteps)};
      if (block.rows <= 0) continue;  // no register tile reads it
      char* const out = panel + half * kAmxRegisterBytes;
      const T* const data = operand.at(first + skipped, first_k + k);
      const bool whole = steps_are_neighbours ? block.rows == kRegisterRows : block.steps >= kAmxSteps - 1;
      for (int part = 0; !whole && part < kParts; ++part) std::memset(out + part * kPartBytes, 0, kAmxRegisterBytes);
      if (steps_are_neighbours) {
        pack_rows(data, operand.row_stride, block, out);
      } else {
        pack_steps(data, operand.k_stride, block, out);
      }
      if (steps_are_neighbours == (kLines == Lines::of_rows)) continue;
      for (int part = 0; part < kParts; ++part) turn(out + part * kPartBytes);
    }
  }
}

// ---- Multiplying.

// What LDTILECFG reads: all eight tile registers have 16 lines of 64 bytes.
struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1, start_line = 0, reserved[14] = {};
  std::uint16_t line_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t lines[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);
constexpr TileConfiguration kTileConfiguration;  // in memory for good: compilers drop stores of which they do not know the reader

// The tile registers, for as long as this lives: 0 to 3 sums, 4 and 5 operands along j, 6 and 7 along i.
class TileRegisters {
 public:
  TILEWAVE_WITH_AMX TileRegisters() { _tile_loadconfig(&kTileConfiguration); }
  TILEWAVE_WITH_AMX ~TileRegisters() { _tile_release(); }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;
};

enum class Side : std::uint8_t { i, j };

template <Side kSide, int kI, int kJ>
TILEWAVE_WITH_AMX inline void load(const char* part) {
  if constexpr (kSide == Side::i) {
    _tile_loadd(6, part, 64);
    if constexpr (kI == 2) _tile_loadd(7, part + kAmxRegisterBytes, 64);
  } else {
    _tile_loadd(4, part, 64);
    if constexpr (kJ == 2) _tile_loadd(5, part + kAmxRegisterBytes, 64);
  }
}
template <int kI, int kJ>
TILEWAVE_WITH_AMX inline void add_products() {
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (kI == 2) _tile_dpbf16ps(1, 4, 7);
  if constexpr (kJ == 2) _tile_dpbf16ps(2, 5, 6);
  if constexpr (kI == 2 && kJ == 2) _tile_dpbf16ps(3, 5, 7);
}

// Sums of earlier blocks, a row of kAmxPanel each, or null; and where they go, `ld` elements from one row to the next.
struct Sums {
  const float* from = nullptr;
  float* to = nullptr;
  std::int64_t ld = 0;
};

// Panels of A and B for a block of K.
struct Panels {
  const char *a = nullptr, *b = nullptr;
};

// to[row along j][column along i] = (from, or 0) + the products of so many times kAmxSteps steps; 16 kI columns, 16 kJ rows. The order of
// the parts' products is one of A and B, not of i and j, so that a transposed D has the same bits.
template <int kParts, int kI, int kJ, Side kA>
TILEWAVE_WITH_AMX void multiply(const Panels& panels, std::int64_t times, const Sums& sums) {
  constexpr Side kB = kA == Side::i ? Side::j : Side::i;
  if (sums.from == nullptr) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    constexpr std::int64_t ld = kAmxPanel * 4;
    _tile_loadd(0, sums.from, ld);
    if constexpr (kI == 2) _tile_loadd(1, sums.from + 16, ld);
    if constexpr (kJ == 2) _tile_loadd(2, sums.from + 16 * kAmxPanel, ld);
    if constexpr (kI == 2 && kJ == 2) _tile_loadd(3, sums.from + 16 * kAmxPanel + 16, ld);
  }
  const char *a = panels.a, *b = panels.b;
  for (; times > 0; --times, a += kParts * kPartBytes, b += kParts * kPartBytes) {
    load<kA, kI, kJ>(a);
    if constexpr (kParts == 3) {  // high x low, high x middle, middle x middle, middle x high, high x high, low x high
      load<kB, kI, kJ>(b + 2 * kPartBytes);
      add_products<kI, kJ>();
      load<kB, kI, kJ>(b + kPartBytes);
      add_products<kI, kJ>();
      load<kA, kI, kJ>(a + kPartBytes);
      add_products<kI, kJ>();
    }
    load<kB, kI, kJ>(b);
    add_products<kI, kJ>();
    if constexpr (kParts == 3) {
      load<kA, kI, kJ>(a);
      add_products<kI, kJ>();
      load<kA, kI, kJ>(a + 2 * kPartBytes);
      add_products<kI, kJ>();
    }
  }
  const std::int64_t ld = sums.ld * 4;
  _tile_stored(0, sums.to, ld);
  if constexpr (kI == 2) _tile_stored(1, sums.to + 16, ld);
  if constexpr (kJ == 2) _tile_stored(2, sums.to + 16 * sums.ld, ld);
  if constexpr (kI == 2 && kJ == 2) _tile_stored(3, sums.to + 16 * sums.ld + 16, ld);
}

template <int kParts, Side kA>
void multiply_panels(const Panels& panels, const Outputs& outputs, std::int64_t times, const Sums& sums) {
  if (outputs.count > kRegisterRows) {
    if (outputs.columns > kRegisterRows) return multiply<kParts, 2, 2, kA>(panels, times, sums);
    return multiply<kParts, 2, 1, kA>(panels, times, sums);
  }
  if (outputs.columns > kRegisterRows) return multiply<kParts, 1, 2, kA>(panels, times, sums);
  multiply<kParts, 1, 1, kA>(panels, times, sums);
}

// sums[row] += the sum of the panel's row over so many times kAmxSteps steps: its product with ones. A panel along j meets them as columns,
// one along i as rows.
template <int kParts, Side kSide>
TILEWAVE_WITH_AMX void sum_rows(const char* panel, std::int64_t rows, std::int64_t times, float* sums) {
  struct alignas(64) Line {
    std::uint16_t elements[32] = {};
  };
  static constexpr Line kOnes = [] {
    Line line;
    for (std::uint16_t& element : line.elements) element = 0x3f80;
    return line;
  }();
  for (std::int64_t first = 0; first < rows; first += kRegisterRows, panel += kAmxRegisterBytes) {
    _tile_zero(0);
    _tile_loadd(1, &kOnes, 0);
    for (std::int64_t at = 0; at < times * kParts; ++at) {
      _tile_loadd(2, panel + at * kPartBytes, 64);
      if constexpr (kSide == Side::j) _tile_dpbf16ps(0, 2, 1);
      if constexpr (kSide == Side::i) _tile_dpbf16ps(0, 1, 2);
    }
    alignas(64) float products[kRegisterRows][kRegisterRows];
    _tile_stored(0, products, 64);
    for (std::int64_t r = 0; r < std::min(rows - first, kRegisterRows); ++r)
      sums[first + r] += kSide == Side::j ? products[r][0] : products[0][r];
  }
}

// ---- Tiles.

// The formula of kernels/gemm.h over a part of D.
void finish_outputs(const GemmArgs& args, const Outputs& outputs, float* sums) {
  if (args.d.dtype == DType::f32) return HWY_DYNAMIC_DISPATCH(finish_f32)(args, outputs, sums, kAmxPanel);
  for (std::int64_t column = 0; column < outputs.columns; ++column)
    finish_row<bf16>(args, outputs.j + column, outputs.i, outputs.count, sums + column * kAmxPanel);
}

template <class T>
void store_row_sums(const GemmArgs& args, std::int64_t first, std::int64_t count, const float* sums) {
  T* const out = args.bias_gradient.row<T>(0) + first;
  for (std::int64_t n = 0; n < count; ++n)
    out[n] = static_cast<T>(args.accumulate_bias_gradient ? static_cast<float>(out[n]) + sums[n] : sums[n]);
}

template <class T>
class Tiles {
 public:
  Tiles(const GemmArgs& args, const GemmProblem& problem, const AmxLayout& layout)
      : args_(args), layout_(layout), swapped_(args.d_major == Major::n), i_(args.d.cols), j_(args.d.rows) {
    const Rows<T> a = rows_of<T>(args.a, args.a_major), b = rows_of<T>(args.b, args.b_major);
    along_i_ = swapped_ ? b : a;
    along_j_ = swapped_ ? a : b;
    Epilogue sums_alone;
    sums_alone.bias_gradient = problem.epilogue.bias_gradient;
    plain_ = args.d.dtype == DType::f32 && problem.epilogue == sums_alone;
  }

  std::int64_t count() const { return tiles_i() * ceil_div(j_, layout_.tile_j); }

  void run(std::int64_t tile, char* slot) const {
    char *const panels_i = slot, *const panel_j = panels_i + layout_.panels_i;
    auto* const sums = reinterpret_cast<float*>(panel_j + layout_.panel);
    auto* const row_sums = reinterpret_cast<float*>(panel_j + layout_.panel + layout_.sums);
    const std::int64_t first_i = tile % tiles_i() * layout_.tile_i, first_j = tile / tiles_i() * layout_.tile_j;
    const std::int64_t rows_i = std::min(layout_.tile_i, i_ - first_i), rows_j = std::min(layout_.tile_j, j_ - first_j);
    const bool sums_i = args_.bias_gradient && swapped_ && first_j == 0, sums_j = args_.bias_gradient && !swapped_ && first_i == 0;
    if (sums_i || sums_j) std::memset(row_sums, 0, layout_.row_sums);
    const TileRegisters registers;
    for (std::int64_t k = 0; k == 0 || k < along_i_.k; k += layout_.block_k) {
      const std::int64_t steps = std::min(layout_.block_k, along_i_.k - k), times = ceil_div(steps, kAmxSteps);
      const bool last = k + steps == along_i_.k;
      for (std::int64_t i = 0; i < rows_i; i += kAmxPanel) {
        char* const panel_i = panels_i + i / kAmxPanel * layout_.panel;
        const std::int64_t rows = std::min(rows_i - i, kAmxPanel);
        pack_panel<Lines::of_steps>(along_i_, first_i + i, rows, k, steps, panel_i);
        if (sums_i) sum_rows<kParts, Side::i>(panel_i, rows, times, row_sums + i);
      }
      for (std::int64_t j = 0; j < rows_j; j += kAmxPanel) {
        const std::int64_t columns = std::min(rows_j - j, kAmxPanel);
        pack_panel<Lines::of_rows>(along_j_, first_j + j, columns, k, steps, panel_j);
        if (sums_j) sum_rows<kParts, Side::j>(panel_j, columns, times, row_sums + j);
        for (std::int64_t i = 0; i < rows_i; i += kAmxPanel) {
          const Outputs outputs = {.i = first_i + i, .count = std::min(rows_i - i, kAmxPanel), .j = first_j + j, .columns = columns};
          const bool direct = last && plain_ && outputs.count == kAmxPanel && columns == kAmxPanel;
          const std::int64_t place = layout_.blocks_k == 1 ? 0 : j * round_up(rows_i, kAmxPanel) + i * kAmxPanel;
          const Sums where = {.from = k == 0 ? nullptr : sums + place,
                              .to = direct ? args_.d.row<float>(outputs.j) + outputs.i : sums + place,
                              .ld = direct ? args_.d.ld : kAmxPanel};
          if (last) prefetch_outputs(outputs);
          const char* const panel_i = panels_i + i / kAmxPanel * layout_.panel;
          if (swapped_) {
            multiply_panels<kParts, Side::j>({.a = panel_j, .b = panel_i}, outputs, times, where);
          } else {
            multiply_panels<kParts, Side::i>({.a = panel_i, .b = panel_j}, outputs, times, where);
          }
          if (last && !direct) finish_outputs(args_, outputs, where.to);
        }
      }
    }
    if (sums_i) store_row_sums_of(first_i, rows_i, row_sums);
    if (sums_j) store_row_sums_of(first_j, rows_j, row_sums);
  }

 private:
  static constexpr int kParts = std::is_same_v<T, float> ? 3 : 1;

  std::int64_t tiles_i() const { return ceil_div(i_, layout_.tile_i); }

  void prefetch_outputs(const Outputs& outputs) const {
    const std::int64_t bytes = outputs.count * size_of(args_.d.dtype);
    for (std::int64_t column = 0; column < outputs.columns; ++column) {
      const char* const line =
          static_cast<const char*>(args_.d.data) + ((outputs.j + column) * args_.d.ld + outputs.i) * size_of(args_.d.dtype);
      for (std::int64_t at = 0; at < bytes; at += 64) prefetch_to_write(line + at);
    }
  }

  void store_row_sums_of(std::int64_t first, std::int64_t count, const float* sums) const {
    if (args_.d.dtype == DType::f32) return store_row_sums<float>(args_, first, count, sums);
    store_row_sums<bf16>(args_, first, count, sums);
  }

  const GemmArgs& args_;
  const AmxLayout& layout_;
  bool swapped_, plain_ = false;
  std::int64_t i_, j_;
  Rows<T> along_i_, along_j_;
};

template <class T>
void launch(CpuQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  const GemmProblem problem = problem_of(args);
  const AmxLayout layout(problem, plan.tile);
  const Tiles<T> tiles(args, problem, layout);
  auto* const workspace = reinterpret_cast<char*>(round_up(reinterpret_cast<std::intptr_t>(args.workspace), std::intptr_t{64}));
  const TileLoop loop{.tiles = tiles.count(),
                      .multiply_adds = problem.flops() / 2,
                      .threads = plan.tiling.slots,
                      .alone_below = small_amx_product(problem.operand_dtype)};
  for_each_tile(queue, loop, [&](std::int64_t tile, int thread) { tiles.run(tile, workspace + thread * layout.slot()); });
}

}  // namespace

// Linux keeps the unit's registers for a process that has asked for them (Documentation/arch/x86/xstate.rst).
bool cpu_has_amx() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  static const bool has = [] {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    constexpr unsigned kAmxBf16 = 1U << 22, kAmxTile = 1U << 24;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kAmxBf16) != 0 && (edx & kAmxTile) != 0 &&
           __builtin_cpu_supports("avx512bf16") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return has;
}

void launch_amx_tiles(CpuQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  check_one_type(args, "amx_tiles");
  if (args.a.dtype == DType::f32) {
    launch<float>(queue, args, plan);
  } else {
    launch<bf16>(queue, args, plan);
  }
}

}  // namespace tilewave
#else
namespace tilewave {

bool cpu_has_amx() { return false; }
void launch_amx_tiles(CpuQueue&, const GemmArgs&, const GemmPlan&) { throw Error("amx_tiles: this CPU has no AMX."); }

}  // namespace tilewave
#endif
#endif

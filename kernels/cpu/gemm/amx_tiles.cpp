// amx_tiles on a CPU: f32 or bf16 operands, fp32 sums, f32 or bf16 results. A panel holds 32 rows of an operand as tile registers want
// them, 32 steps of K at a time, an f32 operand's two parts one after another. For each kc block a tile's panels along i stay in the
// second-level cache while those along j pass by; a register tile of 2 x 2 tile registers meets all parts of both. Sums wait in the
// workspace between blocks; the last block's meet the epilogue, or go straight to D. Each output is summed in the order of K by one
// thread: neither threads nor tiles change a bit.
#include "kernels/gemm/cpu/amx_tiles.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/core/queue.h"
#include "kernels/cpu/gemm/launch.h"
#include "kernels/cpu/gemm/prefetch.h"
#include "kernels/gemm/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/amx_tiles.cpp"  // NOLINT
#include <hwy/foreach_target.h>                              // NOLINT: includes this file once a target
#include <hwy/highway.h>

#include "kernels/cpu/gemm/frame-inl.h"

#if HWY_ARCH_X86_64
HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {
namespace {

void finish_f32(const GemmArgs& args, const Outputs& outputs, const float* sums, std::int64_t ld) { finish(args, outputs, sums, ld); }

}  // namespace
}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
#if HWY_ARCH_X86_64
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/cpu/gemm/finish_row.h"

#define TILEWAVE_WITH_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define TILEWAVE_WITH_AMX __attribute__((target("amx-tile,amx-bf16")))

namespace tilewave {
namespace {

HWY_EXPORT(finish_f32);

constexpr std::int64_t kRegisterRows = 16;      // of a tile register: 64 bytes each
constexpr std::int64_t kPairs = kAmxSteps / 2;  // of steps, in a line of a tile register
template <class T>
constexpr std::int64_t kLine = 64 / sizeof(T);
constexpr std::int64_t kPartBytes = 2 * kAmxRegisterBytes;  // of a panel's 32 rows and 32 steps

// How a tile register wants 16 rows and 32 steps of K, in pairs of a step and the one 16 after it: along i a line is a pair of all rows,
// along j all pairs of a row.
enum class Lines : std::uint8_t { of_pairs, of_rows };

// ---- Packing.

// x is near high + low, each of which has a bf16 in the upper half of its lane. The high part is the nearest one, so that what is left may
// have either sign; the low one drops the rest, so that whatever is no number stays none.
struct Split {
  __m512 high, low;
};
TILEWAVE_WITH_AVX512 inline __m512 upper_half(__m512i bits) {
  return _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(static_cast<int>(0xffff0000U))));
}
TILEWAVE_WITH_AVX512 inline Split split(__m512 x) {
  const __m512 high = upper_half(_mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000)));
  return {.high = high, .low = upper_half(_mm512_castps_si512(_mm512_sub_ps(x, high)))};
}

TILEWAVE_WITH_AVX512 inline __mmask16 first_lanes(std::int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<std::int64_t>(count, 0, 16)) - 1U);
}

// Lanes of `first` in the lower halves, of `second` in the upper ones; both have bf16 in their upper halves alone.
TILEWAVE_WITH_AVX512 inline __m512i pairs(__m512 first, __m512 second) {
  return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(first), 16), _mm512_castps_si512(second));
}

// Transposes 16 lines of 16 words in place: lines of pairs become lines of rows, and the other way round.
TILEWAVE_WITH_AVX512 void turn(char* block) {
  constexpr std::int64_t kLineBytes = 64;
  __m512i line[16], other[16];
  for (int r = 0; r < 16; ++r) line[r] = _mm512_load_si512(block + kLineBytes * r);
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
    _mm512_store_si512(block + kLineBytes * r, _mm512_shuffle_i32x4(other[r], other[8 + r], 0x88));
    _mm512_store_si512(block + kLineBytes * (4 + r), _mm512_shuffle_i32x4(other[4 + r], other[12 + r], 0x88));
    _mm512_store_si512(block + kLineBytes * (8 + r), _mm512_shuffle_i32x4(other[r], other[8 + r], 0xdd));
    _mm512_store_si512(block + kLineBytes * (12 + r), _mm512_shuffle_i32x4(other[4 + r], other[12 + r], 0xdd));
  }
}

TILEWAVE_WITH_AVX512 inline __m512 load_some(const float* from, __mmask16 lanes) { return _mm512_maskz_loadu_ps(lanes, from); }
TILEWAVE_WITH_AVX512 inline __m512 load_some(const bf16* from, __mmask16 lanes) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, from)), 16));
}

// A line of each part.
template <class T>
TILEWAVE_WITH_AVX512 inline void store_line(__m512 first, __m512 second, char* out) {
  if constexpr (std::is_same_v<T, float>) {
    const Split one = split(first), other = split(second);
    _mm512_store_si512(out, pairs(one.high, other.high));
    _mm512_store_si512(out + kPartBytes, pairs(one.low, other.low));
  } else {
    _mm512_store_si512(out, pairs(first, second));
  }
}

// A block of at most 16 rows and 32 steps.
struct Block {
  std::int64_t rows = 0, steps = 0;
};

// Lines of rows, as many as there are, from an operand whose steps are neighbours.
template <class T>
TILEWAVE_WITH_AVX512 void pack_rows(const T* data, std::int64_t stride, const Block& block, char* out) {
  const __mmask16 first = first_lanes(block.steps), second = first_lanes(block.steps - kPairs);
  for (std::int64_t r = 0; r < block.rows; ++r, data += stride, out += 64) {
    for (std::int64_t ahead = 0; ahead < kAmxSteps; ahead += kLine<T>) _mm_prefetch(data + kAmxSteps + ahead, _MM_HINT_T0);
    store_line<T>(load_some(data, first), load_some(data + kPairs, second), out);
  }
}

// Lines of pairs, all 16, from an operand whose rows are neighbours.
template <class T>
TILEWAVE_WITH_AVX512 void pack_pairs(const T* data, std::int64_t stride, const Block& block, char* out) {
  const __mmask16 rows = first_lanes(block.rows);
  const T* const second = data + kPairs * stride;
  for (std::int64_t step = 0; step < kPairs; ++step, out += 64) {
    const std::int64_t at = step * stride;
    _mm_prefetch(data + at + kAmxPanel, _MM_HINT_T0);  // of the next panel
    _mm_prefetch(second + at + kAmxPanel, _MM_HINT_T0);
    const bool is_first = step < block.steps, is_second = step + kPairs < block.steps;
    store_line<T>(is_first ? load_some(data + at, rows) : _mm512_setzero_ps(),
                  is_second ? load_some(second + at, rows) : _mm512_setzero_ps(), out);
  }
}

// The panel of rows [first, first + rows) for steps [first_k, first_k + steps), zeros beyond both.
template <Lines kLines, class T>
void pack_panel(const OperandRows<T>& operand, std::int64_t first, std::int64_t rows, std::int64_t first_k, std::int64_t steps,
                char* panel) {
  constexpr int kParts = std::is_same_v<T, float> ? 2 : 1;
  const bool steps_are_neighbours = operand.k_stride == 1;
  for (std::int64_t k = 0; k < steps; k += kAmxSteps, panel += kParts * kPartBytes) {
    for (std::int64_t half = 0; half < 2; ++half) {
      const std::int64_t skipped = half * kRegisterRows;
      const Block block = {.rows = std::min(rows - skipped, kRegisterRows), .steps = std::min(steps - k, kAmxSteps)};
      if (block.rows <= 0) continue;  // no register tile reads it
      char* const out = panel + half * kAmxRegisterBytes;
      const T* const data = operand.at(first + skipped, first_k + k);
      if (steps_are_neighbours) {
        for (int part = 0; block.rows < kRegisterRows && part < kParts; ++part) std::memset(out + part * kPartBytes, 0, kAmxRegisterBytes);
        pack_rows(data, operand.row_stride, block, out);
      } else {
        pack_pairs(data, operand.k_stride, block, out);
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

enum class PanelAxis : std::uint8_t { i, j };

template <PanelAxis kAxis, int kI, int kJ>
TILEWAVE_WITH_AMX inline void load(const char* part) {
  if constexpr (kAxis == PanelAxis::i) {
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

// Panels of A and B for a kc block.
struct Panels {
  const char *a = nullptr, *b = nullptr;
};

// Rows of D that will be written soon: `columns` of them, a register tile's width each. Asked for all at once they would hold up the
// panels' loads, so a few are at every step.
class Ahead {
 public:
  Ahead(const char* first, std::int64_t pitch, std::int64_t columns, std::int64_t width, std::int64_t times)
      : next_(first), pitch_(pitch), left_(columns), width_(width), each_(ceil_div(columns, times)) {}

  void prefetch_some() {
    for (std::int64_t row = 0; row < each_ && left_ > 0; ++row, --left_, next_ += pitch_)
      for (std::int64_t at = 0; at < width_; at += 64) prefetch_to_write(next_ + at);
  }

 private:
  const char* next_;
  std::int64_t pitch_, left_, width_, each_;  // bytes but for left_ and each_, which are rows
};

// to[row along j][column along i] = (from, or 0) + the products of so many times kAmxSteps steps; 16 kI columns, 16 kJ rows. The order of
// the parts' products is one of A and B, not of i and j, so that a transposed D has the same bits.
template <int kParts, int kI, int kJ, PanelAxis kA>
TILEWAVE_WITH_AMX void multiply(const Panels& panels, std::int64_t times, const Sums& sums, Ahead ahead) {
  constexpr PanelAxis kB = kA == PanelAxis::i ? PanelAxis::j : PanelAxis::i;
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
    ahead.prefetch_some();
    load<kA, kI, kJ>(a);
    if constexpr (kParts == 2) {  // high x low, high x high, low x high
      load<kB, kI, kJ>(b + kPartBytes);
      add_products<kI, kJ>();
    }
    load<kB, kI, kJ>(b);
    add_products<kI, kJ>();
    if constexpr (kParts == 2) {
      load<kA, kI, kJ>(a + kPartBytes);
      add_products<kI, kJ>();
    }
  }
  const std::int64_t ld = sums.ld * 4;
  _tile_stored(0, sums.to, ld);
  if constexpr (kI == 2) _tile_stored(1, sums.to + 16, ld);
  if constexpr (kJ == 2) _tile_stored(2, sums.to + 16 * sums.ld, ld);
  if constexpr (kI == 2 && kJ == 2) _tile_stored(3, sums.to + 16 * sums.ld + 16, ld);
}

template <int kParts, PanelAxis kA>
void multiply_panels(const Panels& panels, const Outputs& outputs, std::int64_t times, const Sums& sums, const Ahead& ahead) {
  if (outputs.count > kRegisterRows) {
    if (outputs.columns > kRegisterRows) return multiply<kParts, 2, 2, kA>(panels, times, sums, ahead);
    return multiply<kParts, 2, 1, kA>(panels, times, sums, ahead);
  }
  if (outputs.columns > kRegisterRows) return multiply<kParts, 1, 2, kA>(panels, times, sums, ahead);
  multiply<kParts, 1, 1, kA>(panels, times, sums, ahead);
}

// sums[row] += the sum of the panel's row over so many times kAmxSteps steps: its product with ones. A panel along j meets them as columns,
// one along i as rows.
template <int kParts, PanelAxis kAxis>
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
      if constexpr (kAxis == PanelAxis::j) _tile_dpbf16ps(0, 2, 1);
      if constexpr (kAxis == PanelAxis::i) _tile_dpbf16ps(0, 1, 2);
    }
    alignas(64) float products[kRegisterRows][kRegisterRows];
    _tile_stored(0, products, 64);
    for (std::int64_t r = 0; r < std::min(rows - first, kRegisterRows); ++r)
      sums[first + r] += kAxis == PanelAxis::j ? products[r][0] : products[0][r];
  }
}

// ---- Tiles.

// The formula of kernels/gemm/gemm.h over a part of D.
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
      : args_(args), layout_(layout), grid_(layout.grid), swapped_(args.d_major == Major::n) {
    const OperandRows<T> a = rows_of<T>(args.a, args.a_major), b = rows_of<T>(args.b, args.b_major);
    along_i_ = swapped_ ? b : a;
    along_j_ = swapped_ ? a : b;
    Epilogue sums_alone;
    sums_alone.bias_gradient = problem.epilogue.bias_gradient;
    plain_ = args.d.dtype == DType::f32 && problem.epilogue == sums_alone && args.alpha.is_one();
  }

  void run(std::int64_t tile, char* slot) const {
    Slot at = {.panels_i = slot, .panel_j = slot + layout_.panels_i};
    at.sums = reinterpret_cast<float*>(at.panel_j + layout_.panel);
    at.row_sums = reinterpret_cast<float*>(at.panel_j + layout_.panel + layout_.sums);
    const std::int64_t first_i = tile % grid_.tiles_i() * grid_.tile_i, first_j = tile / grid_.tiles_i() * grid_.tile_j;
    const std::int64_t rows_i = std::min(grid_.tile_i, grid_.i - first_i), rows_j = std::min(grid_.tile_j, grid_.j - first_j);
    const bool sums_i = args_.bias_gradient && swapped_ && first_j == 0, sums_j = args_.bias_gradient && !swapped_ && first_i == 0;
    if (sums_i || sums_j) std::memset(at.row_sums, 0, static_cast<std::size_t>(layout_.row_sums));
    const TileRegisters registers;
    for (std::int64_t k = 0; k == 0 || k < along_i_.k; k += layout_.block_k) {
      const std::int64_t steps = std::min(layout_.block_k, along_i_.k - k), times = ceil_div(steps, kAmxSteps);
      for (std::int64_t i = 0; i < rows_i; i += kAmxPanel) {
        char* const panel_i = at.panels_i + i / kAmxPanel * layout_.panel;
        const std::int64_t rows = std::min(rows_i - i, kAmxPanel);
        pack_panel<Lines::of_pairs>(along_i_, first_i + i, rows, k, steps, panel_i);
        if (sums_i) sum_rows<kParts, PanelAxis::i>(panel_i, rows, times, at.row_sums + i);
      }
      for (std::int64_t j = 0; j < rows_j; j += kAmxPanel) {
        const std::int64_t columns = std::min(rows_j - j, kAmxPanel);
        pack_panel<Lines::of_rows>(along_j_, first_j + j, columns, k, steps, at.panel_j);
        if (sums_j) sum_rows<kParts, PanelAxis::j>(at.panel_j, columns, times, at.row_sums + j);
        const Outputs outputs = {.i = first_i, .count = rows_i, .j = first_j + j, .columns = columns};
        multiply_row(outputs, {.first = k == 0, .last = k + steps == along_i_.k, .times = times}, at,
                     j / kAmxPanel * round_up(rows_i, kAmxPanel));
      }
    }
    if (sums_i) store_row_sums_of(first_i, rows_i, at.row_sums);
    if (sums_j) store_row_sums_of(first_j, rows_j, at.row_sums);
  }

 private:
  static constexpr int kParts = std::is_same_v<T, float> ? 2 : 1;

  struct Slot {
    char *panels_i = nullptr, *panel_j = nullptr;
    float *sums = nullptr, *row_sums = nullptr;
  };
  struct BlockOfK {
    bool first = false, last = false;
    std::int64_t times = 0;  // kAmxSteps
  };

  // All the tile's panels along i meet the one along j; sums wait from `place` on. A register tile is finished after the next one's
  // products are under way, since what the unit stores can be loaded much later only.
  void multiply_row(const Outputs& row, const BlockOfK& block, const Slot& at, std::int64_t place) const {
    Outputs pending;
    float* pending_sums = nullptr;
    for (std::int64_t i = 0; i < row.count; i += kAmxPanel) {
      const Outputs outputs = {.i = row.i + i, .count = std::min(row.count - i, kAmxPanel), .j = row.j, .columns = row.columns};
      const bool direct = block.last && plain_ && outputs.count == kAmxPanel && outputs.columns == kAmxPanel;
      float* const kept = at.sums + (layout_.kc_blocks == 1 ? i % (2 * kAmxPanel) : place + i) * kAmxPanel;
      const Sums where = {.from = block.first ? nullptr : kept,
                          .to = direct ? args_.d.row<float>(outputs.j) + outputs.i : kept,
                          .ld = direct ? args_.d.ld : kAmxPanel};
      const char* const panel_i = at.panels_i + i / kAmxPanel * layout_.panel;
      if (swapped_) {
        multiply_panels<kParts, PanelAxis::j>({.a = at.panel_j, .b = panel_i}, outputs, block.times, where, ahead_of(outputs, block));
      } else {
        multiply_panels<kParts, PanelAxis::i>({.a = panel_i, .b = at.panel_j}, outputs, block.times, where, ahead_of(outputs, block));
      }
      if (pending_sums != nullptr) finish_outputs(args_, pending, pending_sums);
      pending = outputs;
      pending_sums = block.last && !direct ? kept : nullptr;
    }
    if (pending_sums != nullptr) finish_outputs(args_, pending, pending_sums);
  }

  Ahead ahead_of(const Outputs& outputs, const BlockOfK& block) const {
    const std::int64_t size = size_of(args_.d.dtype);
    const char* const first = static_cast<const char*>(args_.d.data) + (outputs.j * args_.d.ld + outputs.i) * size;
    return {first, args_.d.ld * size, block.last ? outputs.columns : 0, outputs.count * size, std::max(block.times, std::int64_t{1})};
  }

  void store_row_sums_of(std::int64_t first, std::int64_t count, const float* sums) const {
    if (args_.d.dtype == DType::f32) return store_row_sums<float>(args_, first, count, sums);
    store_row_sums<bf16>(args_, first, count, sums);
  }

  const GemmArgs& args_;
  const AmxLayout& layout_;
  const TileGrid& grid_;
  bool swapped_, plain_ = false;
  OperandRows<T> along_i_, along_j_;
};

template <class T>
void launch(CpuQueue& queue, const GemmCall& call) {
  const GemmProblem& problem = call.problem;
  const AmxLayout layout(problem, call.plan.tile);
  const Tiles<T> tiles(call.args, problem, layout);
  char* const given = static_cast<char*>(call.args.workspace);
  char* const workspace = given + (64 - reinterpret_cast<std::uintptr_t>(given) % 64) % 64;
  const TileLoop loop{.grid = layout.grid,
                      .multiply_adds = problem.flops() / 2,
                      .threads = call.plan.tiling.slots,
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

void launch_amx_tiles(CpuQueue& queue, const GemmCall& call) {
  check_one_type(call.args, "amx_tiles");
  if (call.args.a.dtype == DType::f32) {
    launch<float>(queue, call);
  } else {
    launch<bf16>(queue, call);
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

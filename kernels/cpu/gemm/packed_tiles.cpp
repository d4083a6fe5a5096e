// packed_tiles on a CPU, in f32 and f64. A panel holds rows of an operand, interleaved over K; rows that can be read
// where they lie are not packed. For each kc block a tile's panels along i stay in the second-level cache while
// those along j pass by, each in the first-level cache for as long as a register tile (SIMD vectors along i, broadcasts along j)
// meets all of them. Sums wait in the workspace between blocks; the last block's meet the epilogue, or go straight to D.
// Each output is summed in the order of K by one thread, or a part of K by one and the parts in their order: the number of threads
// does not change a bit.
#include "kernels/gemm/cpu/packed_tiles.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernels/core/queue.h"
#include "kernels/cpu/core/row_ranges.h"
#include "kernels/cpu/gemm/launch.h"
#include "kernels/cpu/gemm/prefetch.h"
#include "kernels/gemm/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/packed_tiles.cpp"  // NOLINT
#include <hwy/foreach_target.h>                                 // NOLINT: includes this file once a target
#include <hwy/highway.h>

#include "kernels/cpu/core/transpose-inl.h"
#include "kernels/cpu/gemm/frame-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A panel's rows at most, and what a register tile takes instead of fewer: whole vectors along i; along j any number of columns from
// as many on as cover the latency of a multiply-add.
struct PanelShape {
  std::int64_t width = 0, step = 1, least = 1;

  constexpr std::int64_t whole(std::int64_t rows) const { return std::max(round_up(rows, step), least); }
};

template <class T>
struct Kernel {
  using Vectors = hn::ScalableTag<T>;
  static constexpr std::int64_t kLanes = hn::MaxLanes(Vectors());
  static constexpr RegisterTile kRegisters = packed_register_tile(kLanes * sizeof(T));
  static constexpr std::int64_t kWidthI = kRegisters.vectors * kLanes, kWidthJ = kRegisters.columns;
  static constexpr PanelShape kAlongI = {.width = kWidthI, .step = kLanes, .least = kLanes};
  static constexpr PanelShape kAlongJ = {.width = kWidthJ, .step = 1, .least = 4};
  static_assert(kWidthI <= kWidestPanel && kWidthJ <= kWidestPanel, "the workspace counts with panels of at most kWidestPanel");
};

struct Span {
  std::int64_t first = 0, size = 0;
};
Span part(Span whole, std::int64_t offset, std::int64_t width) {
  return {.first = whole.first + offset, .size = std::min(width, whole.size - offset)};
}

// The rows of a tile's panel. A last one that no register tile fits reaches back into its neighbour, whose last `again` rows are then
// summed twice, with the same bits: nothing ragged is left but a tile of less than a panel.
struct PanelRows {
  std::int64_t first = 0, size = 0, again = 0;
};
PanelRows panel_rows(Span tile, std::int64_t offset, const PanelShape& panel) {
  const Span rows = part(tile, offset, panel.width);
  const std::int64_t again = offset > 0 ? panel.whole(rows.size) - rows.size : 0;
  return {.first = rows.first - again, .size = rows.size + again, .again = again};
}

constexpr std::int64_t kPrefetched = 16;  // steps of k ahead
template <class T>
constexpr std::int64_t kLine = 64 / sizeof(T);

// panel[k][r] = operand(first + r, k) for r < rows; what stands behind, up to whole vectors, meets no output.
template <std::int64_t kWidth, class T>
void pack_panel(const Operand<T>& operand, const PanelRows& panel_rows, Span span_k, T* HWY_RESTRICT panel) {
  using Vectors = std::conditional_t<kWidth % Kernel<T>::kLanes == 0, typename Kernel<T>::Vectors, Quad<T>>;
  const Vectors d;
  constexpr std::int64_t lanes = hn::MaxLanes(d);
  const std::int64_t first = panel_rows.first, rows = panel_rows.size;
  const auto [first_k, k] = span_k;
  const T* HWY_RESTRICT in = operand.data + first * operand.row_stride + first_k * operand.k_stride;
  if (operand.row_stride == 1) {
    for (std::int64_t at = 0; at < k; ++at) {
      const T* HWY_RESTRICT from = in + at * operand.k_stride;
      T* HWY_RESTRICT to = panel + at * kWidth;
      for (std::int64_t ahead = 0; ahead < kWidth; ahead += kLine<T>) __builtin_prefetch(from + kPrefetched * operand.k_stride + ahead);
      if (rows == kWidth) {
        std::memcpy(to, from, kWidth * sizeof(T));
      } else {
        for (std::int64_t r = 0; r < rows; r += lanes) hn::StoreU(load_some(d, from + r, std::min(rows - r, lanes)), d, to + r);
      }
    }
    return;
  }
  const std::int64_t stride = operand.row_stride, square_k = k / kSquare<T> * kSquare<T>;
  for (std::int64_t r = 0; r < rows; r += lanes) {
    const T* const from = in + r * stride;
    const std::int64_t last = std::min(rows - r, lanes) - 1;  // rows that are missing are the last one again
    for (std::int64_t at = 0; at < square_k; at += kSquare<T>) {
      for (std::int64_t row = lanes; at % kLine<T> == 0 && row < 2 * lanes; ++row) __builtin_prefetch(from + row * stride + at);
      T* const to = panel + at * kWidth + r;
      const auto put = [&](std::int64_t step, auto vector) HWY_ATTR { hn::StoreU(vector, d, to + step * kWidth); };
      if (last == lanes - 1) {
        transpose_rows(
            d, [&](std::int64_t row) HWY_ATTR { return from + row * stride + at; }, put);
      } else {
        transpose_rows(
            d, [&](std::int64_t row) HWY_ATTR { return from + std::min(row, last) * stride + at; }, put);
      }
    }
    for (std::int64_t at = square_k; at < k; ++at) {
      for (std::int64_t row = 0; row < lanes; ++row) panel[at * kWidth + r + row] = from[std::min(row, last) * stride + at];
    }
  }
}

// out[row] = sum over k of the panel's row, or that on top of what is there; every fourth k has a sum of its own.
template <std::int64_t kWidth, class T>
void sum_panel(const T* HWY_RESTRICT panel, const PanelRows& rows, std::int64_t k, bool accumulate, T* HWY_RESTRICT out) {
  T sums[4][kWidth] = {};
  for (std::int64_t at = 0; at < k; at += 4) {
    for (std::int64_t step = 0; step < std::min<std::int64_t>(4, k - at); ++step) {
      for (std::int64_t r = 0; r < kWidth; ++r) sums[step][r] += panel[(at + step) * kWidth + r];
    }
  }
  for (std::int64_t r = rows.again; r < rows.size; ++r) {
    const T sum = (sums[0][r] + sums[1][r]) + (sums[2][r] + sums[3][r]);
    T& total = out[rows.first + r];
    total = accumulate ? total + sum : sum;
  }
}

// Where a panel's columns lie: side by side in every step of k, or each in a row of its own along k.
enum class Columns { adjacent, apart };

// One panel of an operand for a kc block: `step` elements from one k to the next; where columns are apart, from one to the next.
template <class T>
struct Panel {
  const T* data = nullptr;
  std::int64_t step = 0;
};

// Sums of earlier blocks, kWidthI a column, or null; and where they go.
template <class T>
struct Sums {
  const T* from = nullptr;
  T* to = nullptr;
  std::int64_t ld = 0;
};

// A matrix's lines one at a time, then those of its last row again and again.
template <class T>
class Lines {
 public:
  Lines(const T* data, std::int64_t ld, std::int64_t rows, std::int64_t width)
      : next_(data), left_(ceil_div(width, kLine<T>)), row_(data), ld_(ld), rows_(rows), lines_(left_) {}

  HWY_INLINE const T* next() {
    const T* const line = next_;
    next_ += kLine<T>;
    if (--left_ == 0) {
      if (--rows_ > 0) row_ += ld_;
      next_ = row_;
      left_ = lines_;
    }
    return line;
  }

 private:
  const T* next_;
  std::int64_t left_;  // lines of the row
  const T* row_;
  std::int64_t ld_, rows_, lines_;
};

// What is asked for while register tiles sum, since all of it at once would hold the panels up: what this one's sums meet, and
// what is packed or read in place next.
template <class T>
struct Ahead {
  Ahead(const Lines<T>& nothing, std::int64_t steps)
      : written(nothing), read(nothing), packed_i(nothing), packed_j(nothing), steps_a_line(steps) {}
  Lines<T> written, read, packed_i, packed_j;
  std::int64_t steps_a_line;  // of k, while a line of each is on its way; all there are where nothing is asked for

  HWY_INLINE void prefetch_next() {
    prefetch_to_write(written.next());
    __builtin_prefetch(read.next());
    __builtin_prefetch(packed_i.next(), 0, 2);
    __builtin_prefetch(packed_j.next(), 0, 2);
  }
};
constexpr std::int64_t kStepsALine = 4;

// to[column * ld + lane] = (from, or 0) + sum over k of i(k, lane) j(k, column).
template <std::int64_t kVectors, std::int64_t kColumns, Columns kLie, class T>
HWY_NOINLINE void multiply(const Panel<T>& i, const Panel<T>& j, std::int64_t k, const Sums<T>& sums, Ahead<T>& ahead) {
  using K = Kernel<T>;
  const typename K::Vectors d;
  hn::Vec<typename K::Vectors> sum[kColumns][kVectors];
  HWY_UNROLL(12)
  for (std::int64_t c = 0; c < kColumns; ++c) {
    HWY_UNROLL(3)
    for (std::int64_t v = 0; v < kVectors; ++v)
      sum[c][v] = sums.from == nullptr ? hn::Zero(d) : hn::LoadU(d, sums.from + c * K::kWidthI + v * K::kLanes);
  }
  // Three columns that lie apart share a pointer; compilers would make eleven offsets, more than there are registers.
  constexpr std::int64_t kShare = kLie == Columns::apart ? 3 : kColumns, kPointers = ceil_div(kColumns, kShare);
  const std::int64_t step_i = i.step, step_j = j.step;
  const T* HWY_RESTRICT a = i.data;
  const T* b[kPointers];
  HWY_UNROLL(4)
  for (std::int64_t p = 0; p < kPointers; ++p) b[p] = j.data + p * kShare * step_j;
  const std::int64_t steps_a_line = ahead.steps_a_line;
  for (std::int64_t left = k; left > 0; left -= steps_a_line) {
    if (left > steps_a_line) ahead.prefetch_next();
    HWY_UNROLL(1)
    for (std::int64_t at = std::min(left, steps_a_line); at > 0; --at) {
      hn::Vec<typename K::Vectors> along_i[kVectors];
      HWY_UNROLL(3)
      for (std::int64_t v = 0; v < kVectors; ++v) along_i[v] = hn::LoadU(d, a + v * K::kLanes);
      HWY_UNROLL(12)
      for (std::int64_t c = 0; c < kColumns; ++c) {
        const auto along_j = hn::Set(d, b[c / kShare][c % kShare * (kLie == Columns::apart ? step_j : 1)]);
        HWY_UNROLL(3)
        for (std::int64_t v = 0; v < kVectors; ++v) sum[c][v] = hn::MulAdd(along_i[v], along_j, sum[c][v]);
      }
      a += step_i;
      HWY_UNROLL(4)
      for (std::int64_t p = 0; p < kPointers; ++p) {
        const T* next = b[p] + (kLie == Columns::apart ? 1 : step_j);
        asm("" : "+r"(next));
        b[p] = next;
      }
    }
  }
  T* to = sums.to;
  const std::int64_t ld = sums.ld;
  HWY_UNROLL(12)
  for (std::int64_t c = 0; c < kColumns; ++c, to += ld) {
    HWY_UNROLL(3)
    for (std::int64_t v = 0; v < kVectors; ++v) hn::StoreU(sum[c][v], d, to + v * K::kLanes);
  }
}

// The smallest register tile that covers the panels' outputs.
template <std::int64_t kVectors, std::int64_t kColumns, class T>
void multiply_columns(std::int64_t columns, Columns lie, const Panel<T>& i, const Panel<T>& j, std::int64_t k, const Sums<T>& sums,
                      Ahead<T>& ahead) {
  if constexpr (kColumns > Kernel<T>::kAlongJ.least) {
    if (columns < kColumns) return multiply_columns<kVectors, kColumns - 1>(columns, lie, i, j, k, sums, ahead);
  }
  if (lie == Columns::apart) return multiply<kVectors, kColumns, Columns::apart>(i, j, k, sums, ahead);
  multiply<kVectors, kColumns, Columns::adjacent>(i, j, k, sums, ahead);
}
template <class T>
void multiply_panels(std::int64_t lanes, std::int64_t columns, Columns lie, const Panel<T>& i, const Panel<T>& j, std::int64_t k,
                     const Sums<T>& sums, Ahead<T>& ahead) {
  using K = Kernel<T>;
  if constexpr (K::kRegisters.vectors == 3) {
    if (lanes > 2 * K::kLanes) return multiply_columns<3, K::kWidthJ>(columns, lie, i, j, k, sums, ahead);
  }
  if (lanes > K::kLanes) return multiply_columns<2, K::kWidthJ>(columns, lie, i, j, k, sums, ahead);
  multiply_columns<1, K::kWidthJ>(columns, lie, i, j, k, sums, ahead);
}

// The tiles of one D: the problem's, or a part's of K.
template <class T>
class Tiles {
 public:
  Tiles(const GemmArgs& args, const PackedLayout& layout) : frame_(args), layout_(layout), plain_(frame_.plain()) {
    small_ = frame_.i * frame_.j * frame_.k < kSmallPackedProduct;
    met_ = args.derivative_of ? args.derivative_of : args.residual ? args.residual : ConstMatrixView(args.saved_input);
  }

  void run(std::int64_t tile, T* slot) const {
    const TileGrid& grid = layout_.grid;
    run_tile(part({.first = 0, .size = grid.i}, tile % grid.tiles_i() * grid.tile_i, grid.tile_i),
             part({.first = 0, .size = grid.j}, tile / grid.tiles_i() * grid.tile_j, grid.tile_j), slot);
  }

 private:
  using K = Kernel<T>;
  static constexpr std::int64_t kPackedAtOnce = 16;  // steps of k
  static constexpr std::int64_t kGroup = PackedLayout::kColumnsAtOnce / K::kWidthJ * K::kWidthJ;

  void run_tile(Span tile_i, Span tile_j, T* panels_i) const {
    T* panels_j = panels_i + layout_.panels_i;
    T* sums = panels_j + layout_.panels_j;
    const Span all_i = {.first = 0, .size = tile_i.size}, all_j = {.first = 0, .size = tile_j.size};
    const Span all_k = {.first = 0, .size = frame_.k};
    for (std::int64_t k = 0; k < frame_.k; k += layout_.block_k) {
      const Span block = part(all_k, k, layout_.block_k), next_block = part(all_k, k + block.size, layout_.block_k);
      pack<K::kAlongI>(frame_.along_i, tile_i, all_i, block, layout_.reads_i, panels_i);
      if (frame_.swapped && tile_j.first == 0) add_bias_gradient<K::kAlongI>(tile_i, all_i, block, panels_i);
      Ahead<T> ahead(Lines<T>(panels_j, 0, 1, 1), small_ ? block.size : kStepsALine);
      for (std::int64_t offset = 0; offset < tile_j.size; offset += kGroup) {
        const Span group = part(all_j, offset, kGroup);
        pack<K::kAlongJ>(frame_.along_j, tile_j, group, block, layout_.reads_j, panels_j);
        if (!frame_.swapped && tile_i.first == 0) add_bias_gradient<K::kAlongJ>(tile_j, group, block, panels_j);
        // An equal share of the next block along i while each group is multiplied; along j the next group.
        const std::int64_t share = offset * next_block.size / tile_j.size, until = (offset + group.size) * next_block.size / tile_j.size;
        if (until > share) ahead.packed_i = lines_of(frame_.along_i, tile_i, part(next_block, share, until - share));
        if (offset + kGroup < tile_j.size) {
          ahead.packed_j = lines_of(frame_.along_j, part(tile_j, offset + kGroup, kGroup), block);
        } else if (next_block.size > 0) {
          ahead.packed_j = lines_of(frame_.along_j, part(tile_j, 0, kGroup), next_block);
        }
        multiply_group(tile_i, tile_j, group, block, panels_i, panels_j, sums + (layout_.kc_blocks > 1 ? offset * layout_.padded_i : 0),
                       ahead);
      }
    }
  }

  // Panels of one kc block of a group of the tile's rows, but for those that are read in place.
  template <PanelShape kPanel>
  void pack(const Operand<T>& operand, Span tile, Span group, Span block, bool in_place, T* panels) const {
    const std::int64_t step = operand.row_stride == 1 ? kPackedAtOnce : block.size;
    for (std::int64_t at = 0; at < block.size; at += step) {
      const Span some = part(block, at, step);
      for (std::int64_t offset = 0; offset < group.size; offset += kPanel.width) {
        const PanelRows rows = panel_rows(tile, group.first + offset, kPanel);
        if (!in_place || rows.size != kPanel.whole(rows.size)) {
          pack_panel<kPanel.width>(operand, rows, some, panels + offset * block.size + at * kPanel.width);
        }
      }
    }
  }

  template <PanelShape kPanel>
  void add_bias_gradient(Span tile, Span group, Span block, const T* panels) const {
    const MatrixView& gradient = frame_.args.bias_gradient;
    if (!gradient) return;
    const bool accumulate = frame_.args.accumulate_bias_gradient || block.first > 0;
    for (std::int64_t offset = 0; offset < group.size; offset += kPanel.width) {
      const PanelRows rows = panel_rows(tile, group.first + offset, kPanel);
      sum_panel<kPanel.width>(panels + offset * block.size, rows, block.size, accumulate, gradient.row<T>(0));
    }
  }

  void multiply_group(Span tile_i, Span tile_j, Span group, Span block, const T* panels_i, const T* panels_j, T* sums,
                      Ahead<T>& ahead) const {
    const bool last = block.first + block.size == frame_.k;
    for (std::int64_t offset_j = 0; offset_j < group.size; offset_j += K::kWidthJ) {
      const PanelRows columns = panel_rows(tile_j, group.first + offset_j, K::kAlongJ);
      const bool whole_j = columns.size == K::kAlongJ.whole(columns.size), in_place_j = layout_.reads_j && whole_j;
      const Operand<T>& from_j = frame_.along_j;
      const Columns lie = in_place_j && from_j.k_stride == 1 ? Columns::apart : Columns::adjacent;
      const Panel<T> j = in_place_j ? Panel<T>{.data = from_j.data + columns.first * from_j.row_stride + block.first * from_j.k_stride,
                                               .step = lie == Columns::apart ? from_j.row_stride : from_j.k_stride}
                                    : Panel<T>{.data = panels_j + offset_j * block.size, .step = K::kWidthJ};
      for (std::int64_t offset_i = 0; offset_i < tile_i.size; offset_i += K::kWidthI) {
        const PanelRows rows = panel_rows(tile_i, offset_i, K::kAlongI);
        const bool whole_i = rows.size == K::kAlongI.whole(rows.size);
        const Panel<T> i = layout_.reads_i && whole_i
                               ? Panel<T>{.data = frame_.along_i.data + rows.first + block.first * frame_.along_i.k_stride,
                                          .step = frame_.along_i.k_stride}
                               : Panel<T>{.data = panels_i + offset_i * block.size, .step = K::kWidthI};
        const bool direct = last && plain_ && whole_i && whole_j;
        const MatrixView& d = frame_.args.d;
        T* const kept = sums + (layout_.kc_blocks > 1 ? offset_j * layout_.padded_i + offset_i * K::kWidthJ : 0);
        const Sums<T> place = {.from = block.first == 0 ? nullptr : kept,
                               .to = direct ? d.row<T>(columns.first) + rows.first : kept,
                               .ld = direct ? d.ld : K::kWidthI};
        if (!small_) ahead.written = last ? lines_of(d, rows, columns) : Lines<T>(kept, 0, 1, columns.size * K::kWidthI);
        if (last && met_ && !small_) ahead.read = lines_of(met_, rows, columns);
        if (last && !small_ && block.size < 2 * kStepsALine * K::kWidthJ) prefetch_outputs(rows, columns);
        multiply_panels<T>(rows.size, columns.size, lie, i, j, block.size, place, ahead);
        if (last && !direct) {
          const Outputs outputs = {.i = rows.first + rows.again,
                                   .count = rows.size - rows.again,
                                   .j = columns.first + columns.again,
                                   .columns = columns.size - columns.again};
          finish(frame_.args, outputs, kept + columns.again * K::kWidthI + rows.again, K::kWidthI);
        }
      }
    }
  }

  void prefetch_outputs(const PanelRows& rows, const PanelRows& columns) const {
    const T* out = frame_.args.d.template row<T>(columns.first) + rows.first;
    for (std::int64_t column = 0; column < columns.size; ++column, out += frame_.args.d.ld) {
      prefetch_to_write(out);
      prefetch_to_write(out + rows.size - 1);
    }
  }

  static Lines<T> lines_of(const ConstMatrixView& matrix, const PanelRows& rows, const PanelRows& columns) {
    return {matrix.template row<T>(columns.first) + rows.first, matrix.ld, columns.size, rows.size};
  }
  static Lines<T> lines_of(const Operand<T>& operand, Span rows, Span block) {
    const T* const first = operand.data + rows.first * operand.row_stride + block.first * operand.k_stride;
    return operand.row_stride == 1 ? Lines<T>(first, operand.k_stride, block.size, rows.size)
                                   : Lines<T>(first, operand.row_stride, rows.size, block.size);
  }

  Frame<T> frame_;
  const PackedLayout& layout_;
  ConstMatrixView met_;  // what the epilogue reads or writes beside D
  bool plain_, small_ = false;
};

// One part of K as a product of its own, whose D and bias gradient are the part's sums.
template <class T>
GemmArgs part_of(const GemmArgs& args, const PackedLayout& layout, std::int64_t index, T* sums) {
  const std::int64_t k = args.a.rows, first = k * index / layout.grid.parts, rows = k * (index + 1) / layout.grid.parts - first;
  const auto steps = [&](ConstMatrixView operand) {
    operand.data = operand.row<T>(first);
    operand.rows = rows;
    return operand;
  };
  const std::int64_t n = args.b.cols;
  GemmArgs part{.role = args.role, .a = steps(args.a), .a_major = args.a_major, .b = steps(args.b), .b_major = args.b_major};
  part.d = {.data = sums, .rows = args.d.rows, .cols = args.d.cols, .ld = layout.part_ld, .dtype = args.d.dtype};
  part.d_major = args.d_major;
  if (args.bias_gradient) {
    part.bias_gradient = {.data = sums + args.d.rows * layout.part_ld, .rows = 1, .cols = n, .ld = n, .dtype = args.d.dtype};
  }
  return part;
}

// Adds rows [begin, end) of the parts' sums up and finishes D.
template <class T>
void add_parts(const GemmArgs& args, const PackedLayout& layout, T* parts, std::int64_t begin, std::int64_t end) {
  const hn::ScalableTag<T> d;
  const Frame<T> frame(args);
  for (std::int64_t j = begin; j < end; ++j) {
    T* const sum = parts + j * layout.part_ld;
    for (std::int64_t index = 1; index < layout.grid.parts; ++index) {
      const T* const more = sum + index * layout.part;
      for (std::int64_t i = 0; i < frame.i; i += hn::MaxLanes(d))
        hn::StoreU(hn::Add(hn::LoadU(d, sum + i), hn::LoadU(d, more + i)), d, sum + i);
    }
    finish(frame.args, {.i = 0, .count = frame.i, .j = j, .columns = 1}, sum, layout.part_ld);
  }
}

template <class T>
void add_bias_gradients(const GemmArgs& args, const PackedLayout& layout, const T* parts) {
  T* const out = args.bias_gradient.row<T>(0);
  for (std::int64_t n = 0; n < args.bias_gradient.cols; ++n) {
    const T* const sums = parts + args.d.rows * layout.part_ld + n;
    T sum = sums[0];
    for (std::int64_t index = 1; index < layout.grid.parts; ++index) sum += sums[index * layout.part];
    out[n] = args.accumulate_bias_gradient ? out[n] + sum : sum;
  }
}

template <class T>
void launch(CpuQueue& queue, const GemmCall& call) {
  const GemmArgs& args = call.args;
  const GemmProblem& problem = call.problem;
  const PackedLayout layout(problem, call.plan.tile);
  T* const workspace = static_cast<T*>(args.workspace);
  T* const sums = workspace + call.plan.tiling.slots * layout.slot();
  const Tiles<T> whole(args, layout);
  const std::int64_t count = layout.grid.tiles_i() * layout.grid.tiles_j();
  const TileLoop loop{
      .grid = layout.grid, .multiply_adds = problem.flops() / 2, .threads = call.plan.tiling.slots, .alone_below = kSmallPackedProduct};
  if (layout.grid.parts == 1) {
    for_each_tile(queue, loop, [&](std::int64_t tile, int thread) { whole.run(tile, workspace + thread * layout.slot()); });
    return;
  }
  for_each_tile(queue, loop, [&](std::int64_t tile, int thread) {
    const std::int64_t index = tile / count;
    const GemmArgs part = part_of(args, layout, index, sums + index * layout.part);
    Tiles<T>(part, layout).run(tile % count, workspace + thread * layout.slot());
  });
  for_row_ranges(queue, args.d.rows, layout.grid.parts * layout.part_ld,
                 [&](std::int64_t begin, std::int64_t end) { add_parts<T>(args, layout, sums, begin, end); });
  if (args.bias_gradient) add_bias_gradients<T>(args, layout, sums);
}

void launch_f32(CpuQueue& queue, const GemmCall& call) { launch<float>(queue, call); }
void launch_f64(CpuQueue& queue, const GemmCall& call) { launch<double>(queue, call); }

}  // namespace
}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tilewave {
namespace {

HWY_EXPORT(launch_f32);
HWY_EXPORT(launch_f64);

}  // namespace

void launch_packed_tiles(CpuQueue& queue, const GemmCall& call) {
  check_one_type(call.args, "packed_tiles");
  if (call.args.d.dtype == DType::f32) {
    HWY_DYNAMIC_DISPATCH(launch_f32)(queue, call);
  } else {
    HWY_DYNAMIC_DISPATCH(launch_f64)(queue, call);
  }
}

}  // namespace tilewave
#endif

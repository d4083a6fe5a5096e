// packed_tiles on a CPU, in f32 and f64. Packing absorbs majors and pitches: a panel holds `width` rows of an operand,
// interleaved over K and padded with zeros. A register tile of SIMD vectors along i and broadcasts along j runs over one
// block of K at a time; its sums wait in the workspace between blocks. The epilogue reads the last block's sums.
// Each output is summed in the order of K by one thread: the number of threads does not change a bit.
#include "kernels/gemm/rows/packed_tiles.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/cpu/gemm/launch.h"
#include "kernels/gemm.h"
#include "kernels/queue.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/packed_tiles.cpp"  // NOLINT
#include <hwy/foreach_target.h>                                 // NOLINT: includes this file once a target
#include <hwy/highway.h>

#include "kernels/cpu/gemm/frame-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct Kernel {
  using Vectors = hn::ScalableTag<T>;
  static constexpr std::int64_t kLanes = hn::MaxLanes(Vectors());
  static constexpr RegisterTile kRegisters = packed_register_tile(kLanes * sizeof(T));
  static constexpr std::int64_t kWidthI = kRegisters.vectors * kLanes, kWidthJ = kRegisters.columns;
  static_assert(kWidthI <= kWidestPanel && kWidthJ <= kWidestPanel, "the workspace counts with panels of at most kWidestPanel");
};

// Transposes a square, 16 bytes a row where there are vectors: out[k * width + r] = in[r * stride + k].
template <class T>
using Quad = hn::CappedTag<T, 16 / sizeof(T)>;

template <class T>
HWY_INLINE void transpose_square(const T* HWY_RESTRICT in, std::int64_t stride, T* HWY_RESTRICT out, std::int64_t width) {
#if HWY_TARGET == HWY_SCALAR
  (void)stride, (void)width;
  *out = *in;
#else
  const Quad<T> d;
  if constexpr (sizeof(T) == 8) {
    const auto r0 = hn::LoadU(d, in), r1 = hn::LoadU(d, in + stride);
    hn::StoreU(hn::InterleaveLower(d, r0, r1), d, out);
    hn::StoreU(hn::InterleaveUpper(d, r0, r1), d, out + width);
  } else {
    const auto r0 = hn::LoadU(d, in), r1 = hn::LoadU(d, in + stride), r2 = hn::LoadU(d, in + 2 * stride),
               r3 = hn::LoadU(d, in + 3 * stride);
    const auto low02 = hn::InterleaveLower(d, r0, r2), low13 = hn::InterleaveLower(d, r1, r3);
    const auto high02 = hn::InterleaveUpper(d, r0, r2), high13 = hn::InterleaveUpper(d, r1, r3);
    hn::StoreU(hn::InterleaveLower(d, low02, low13), d, out);
    hn::StoreU(hn::InterleaveUpper(d, low02, low13), d, out + width);
    hn::StoreU(hn::InterleaveLower(d, high02, high13), d, out + 2 * width);
    hn::StoreU(hn::InterleaveUpper(d, high02, high13), d, out + 3 * width);
  }
#endif
}

// panel[k][r] = operand(first + r, k) for r < rows, 0 for rows <= r < kWidth.
template <std::int64_t kWidth, class T>
void pack_panel(const Operand<T>& operand, std::int64_t first, std::int64_t rows, std::int64_t k, T* HWY_RESTRICT panel) {
  const T* HWY_RESTRICT in = operand.data + first * operand.row_stride;
  if (operand.row_stride == 1) {
    for (std::int64_t at = 0; at < k; ++at) {
      const T* HWY_RESTRICT from = in + at * operand.k_stride;
      T* HWY_RESTRICT to = panel + at * kWidth;
      if (rows == kWidth) {
        std::memcpy(to, from, kWidth * sizeof(T));
      } else {
        std::copy_n(from, rows, to);
        std::fill(to + rows, to + kWidth, T(0));
      }
    }
    return;
  }
  constexpr std::int64_t square = hn::MaxLanes(Quad<T>());
  const std::int64_t square_rows = rows / square * square, square_k = k / square * square;
  for (std::int64_t at = 0; at < square_k; at += square) {
    for (std::int64_t r = 0; r < square_rows; r += square)
      transpose_square(in + r * operand.row_stride + at, operand.row_stride, panel + at * kWidth + r, kWidth);
  }
  for (std::int64_t at = 0; at < k; ++at) {
    for (std::int64_t r = at < square_k ? square_rows : 0; r < rows; ++r) panel[at * kWidth + r] = in[r * operand.row_stride + at];
    std::fill(panel + at * kWidth + rows, panel + (at + 1) * kWidth, T(0));
  }
}

// sums[r] = sum over k of panel[k][r], or that on top of what is there.
template <std::int64_t kWidth, class T>
void sum_panel(const T* HWY_RESTRICT panel, std::int64_t rows, std::int64_t k, bool accumulate, T* HWY_RESTRICT out) {
  T sums[kWidth] = {};
  for (std::int64_t at = 0; at < k; ++at) {
    for (std::int64_t r = 0; r < kWidth; ++r) sums[r] += panel[at * kWidth + r];
  }
  for (std::int64_t r = 0; r < rows; ++r) out[r] = accumulate ? out[r] + sums[r] : sums[r];
}

enum class Sums { start, go_on };

// sums[column][lane] = (those there, or 0) + sum over k of a[k][lane] b[k][column]; rows of kWidthI in sums and a, kWidthJ in b.
template <std::int64_t kVectors, std::int64_t kColumns, class T>
void multiply(const T* HWY_RESTRICT a, const T* HWY_RESTRICT b, std::int64_t k, Sums state, T* HWY_RESTRICT sums) {
  using K = Kernel<T>;
  const typename K::Vectors d;
  hn::Vec<typename K::Vectors> sum[kColumns][kVectors];
  HWY_UNROLL(12)
  for (std::int64_t c = 0; c < kColumns; ++c) {
    HWY_UNROLL(3)
    for (std::int64_t v = 0; v < kVectors; ++v)
      sum[c][v] = state == Sums::start ? hn::Zero(d) : hn::LoadU(d, sums + c * K::kWidthI + v * K::kLanes);
  }
  for (std::int64_t at = 0; at < k; ++at, a += K::kWidthI, b += K::kWidthJ) {
    hn::Vec<typename K::Vectors> along_i[kVectors];
    HWY_UNROLL(3)
    for (std::int64_t v = 0; v < kVectors; ++v) along_i[v] = hn::LoadU(d, a + v * K::kLanes);
    HWY_UNROLL(12)
    for (std::int64_t c = 0; c < kColumns; ++c) {
      const auto along_j = hn::Set(d, b[c]);
      HWY_UNROLL(3)
      for (std::int64_t v = 0; v < kVectors; ++v) sum[c][v] = hn::MulAdd(along_i[v], along_j, sum[c][v]);
    }
  }
  HWY_UNROLL(12)
  for (std::int64_t c = 0; c < kColumns; ++c) {
    HWY_UNROLL(3)
    for (std::int64_t v = 0; v < kVectors; ++v) hn::StoreU(sum[c][v], d, sums + c * K::kWidthI + v * K::kLanes);
  }
}

// The smallest register tile that covers i x j of a panel's outputs: whole vectors, and columns by fours.
template <std::int64_t kVectors, class T>
void multiply_columns(std::int64_t j, const T* a, const T* b, std::int64_t k, Sums state, T* sums) {
  if constexpr (Kernel<T>::kWidthJ == 12) {
    if (j > 8) return multiply<kVectors, 12>(a, b, k, state, sums);
    if (j > 4) return multiply<kVectors, 8>(a, b, k, state, sums);
  }
  multiply<kVectors, 4>(a, b, k, state, sums);
}
template <class T>
void multiply_panels(std::int64_t i, std::int64_t j, const T* a, const T* b, std::int64_t k, Sums state, T* sums) {
  if (i > 2 * Kernel<T>::kLanes) return multiply_columns<3>(j, a, b, k, state, sums);
  if (i > Kernel<T>::kLanes) return multiply_columns<2>(j, a, b, k, state, sums);
  multiply_columns<1>(j, a, b, k, state, sums);
}

template <class T>
class Launch {
 public:
  Launch(CpuQueue& queue, const GemmArgs& args, const GemmPlan& plan)
      : frame_(args), layout_(problem_of(args), plan.tile), queue_(queue), slots_(plan.tiling.slots) {
    packed_i_ = static_cast<T*>(args.workspace);
    packed_j_ = packed_i_ + layout_.panels_i;
    sums_ = packed_j_ + layout_.panels_j;
  }

  void run() {
    const std::int64_t slab_i = layout_.slab_tiles_i * layout_.tile_i, slab_j = layout_.slab_tiles_j * layout_.tile_j;
    for (std::int64_t j = 0; j < frame_.j; j += slab_j) {
      const Span span_j = {.first = j, .size = std::min(slab_j, frame_.j - j)};
      for (std::int64_t i = 0; i < frame_.i; i += slab_i) {
        const Span span_i = {.first = i, .size = std::min(slab_i, frame_.i - i)};
        const bool last_i_stays = slab_i >= frame_.i && j > 0;
        pack(last_i_stays ? Span{} : span_i, i == 0 ? span_j : Span{});
        multiply_tiles(span_i, span_j);
      }
    }
  }

 private:
  using K = Kernel<T>;
  struct Span {
    std::int64_t first = 0, size = 0;
  };

  // Panels of one operand's slab: tiles are cut into panels one by one, so that a panel belongs to one tile.
  template <std::int64_t kWidth>
  struct Panels {
    Panels(Span slab, std::int64_t tile_size) : span(slab), tile(tile_size), per_tile(ceil_div(std::min(tile_size, slab.size), kWidth)) {
      const std::int64_t whole = slab.size / tile;
      count = slab.size == 0 ? 0 : whole * per_tile + ceil_div(slab.size - whole * tile, kWidth);
    }
    Span at(std::int64_t panel) const {
      const std::int64_t offset = panel / per_tile * tile + panel % per_tile * kWidth;
      const std::int64_t end = std::min((panel / per_tile + 1) * tile, span.size);
      return {.first = span.first + offset, .size = std::min(kWidth, end - offset)};
    }
    Span span;
    std::int64_t tile, per_tile, count;
  };

  template <class Fn>
  void share_out(std::int64_t count, Fn&& fn) {
    for_each(queue_, frame_.i * frame_.j * frame_.k, count, fn);
  }

  void pack(Span span_i, Span span_j) {
    const Panels<K::kWidthI> panels_i(span_i, layout_.tile_i);
    const Panels<K::kWidthJ> panels_j(span_j, layout_.tile_j);
    share_out(panels_i.count + panels_j.count, [&](std::int64_t index) {
      if (index < panels_i.count) {
        pack_one<K::kWidthI>(frame_.along_i, panels_i.at(index), packed_i_ + index * K::kWidthI * frame_.k, frame_.swapped);
      } else {
        index -= panels_i.count;
        pack_one<K::kWidthJ>(frame_.along_j, panels_j.at(index), packed_j_ + index * K::kWidthJ * frame_.k, !frame_.swapped);
      }
    });
  }

  template <std::int64_t kWidth>
  void pack_one(const Operand<T>& operand, Span rows, T* panel, bool is_b) {
    pack_panel<kWidth>(operand, rows.first, rows.size, frame_.k, panel);
    const MatrixView& gradient = frame_.args.bias_gradient;
    if (is_b && gradient)
      sum_panel<kWidth>(panel, rows.size, frame_.k, frame_.args.accumulate_bias_gradient, gradient.row<T>(0) + rows.first);
  }

  void multiply_tiles(Span span_i, Span span_j) {
    const std::int64_t tiles_i = ceil_div(span_i.size, layout_.tile_i), tiles_j = ceil_div(span_j.size, layout_.tile_j);
    std::atomic<std::int64_t> next{0};
    share_out(std::min(slots_, tiles_i * tiles_j), [&](std::int64_t slot) {
      for (std::int64_t tile = next.fetch_add(1); tile < tiles_i * tiles_j; tile = next.fetch_add(1)) {
        multiply_tile(span_i, span_j, tile % tiles_i, tile / tiles_i, sums_ + slot * layout_.sums);
      }
    });
  }

  void multiply_tile(Span span_i, Span span_j, std::int64_t tile_i, std::int64_t tile_j, T* tile_sums) {
    const Panels<K::kWidthI> panels_i(span_i, layout_.tile_i);
    const Panels<K::kWidthJ> panels_j(span_j, layout_.tile_j);
    const std::int64_t first_i = tile_i * panels_i.per_tile, last_i = std::min(first_i + panels_i.per_tile, panels_i.count);
    const std::int64_t first_j = tile_j * panels_j.per_tile, last_j = std::min(first_j + panels_j.per_tile, panels_j.count);
    for (std::int64_t k = 0; k < frame_.k; k += layout_.block_k) {
      const std::int64_t size_k = std::min(layout_.block_k, frame_.k - k);
      T* sums = tile_sums;
      for (std::int64_t panel_i = first_i; panel_i < last_i; ++panel_i) {
        const T* a = packed_i_ + (panel_i * frame_.k + k) * K::kWidthI;
        const Span i = panels_i.at(panel_i);
        for (std::int64_t panel_j = first_j; panel_j < last_j; ++panel_j) {
          const T* b = packed_j_ + (panel_j * frame_.k + k) * K::kWidthJ;
          const Span j = panels_j.at(panel_j);
          multiply_panels(i.size, j.size, a, b, size_k, k == 0 ? Sums::start : Sums::go_on, sums);
          if (k + size_k == frame_.k) {
            for (std::int64_t column = 0; column < j.size; ++column)
              finish_row(frame_, i.first, j.first + column, i.size, sums + column * K::kWidthI);
          }
          if (layout_.blocks_k > 1) sums += K::kWidthI * K::kWidthJ;
        }
      }
    }
  }

  Frame<T> frame_;
  PackedLayout layout_;
  CpuQueue& queue_;
  std::int64_t slots_;
  T* packed_i_;
  T* packed_j_;
  T* sums_;
};

void launch_f32(CpuQueue& queue, const GemmArgs& args, const GemmPlan& plan) { Launch<float>(queue, args, plan).run(); }
void launch_f64(CpuQueue& queue, const GemmArgs& args, const GemmPlan& plan) { Launch<double>(queue, args, plan).run(); }

}  // namespace
}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tilewave {
namespace {

HWY_EXPORT(launch_f32);
HWY_EXPORT(launch_f64);

}  // namespace

void launch_packed_tiles(CpuQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  check_one_type(args, "packed_tiles");
  if (args.d.dtype == DType::f32) {
    HWY_DYNAMIC_DISPATCH(launch_f32)(queue, args, plan);
  } else {
    HWY_DYNAMIC_DISPATCH(launch_f64)(queue, args, plan);
  }
}

}  // namespace tilewave
#endif

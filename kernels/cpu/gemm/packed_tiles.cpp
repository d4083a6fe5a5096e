// packed_tiles on a CPU, in f32 and f64. Packing absorbs majors and pitches: a panel holds `width` rows of an operand,
// interleaved over K and padded with zeros. A register tile of SIMD vectors along i and broadcasts along j runs over one
// block of K at a time; its sums wait in the workspace between blocks. The epilogue reads the last block's sums.
// Each output is summed in the order of K by one thread: the number of threads does not change a bit.
#include "kernels/gemm/rows/packed_tiles.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/cpu/thread_pool.h"
#include "kernels/error.h"
#include "kernels/gemm.h"
#include "kernels/math/activation.h"
#include "kernels/queue.h"

// Targets whose vectors have no size known to the compiler cannot stand in arrays; the others add nothing to those kept.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/packed_tiles.cpp"
#include <hwy/foreach_target.h>  // NOLINT: includes this file once a target
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tilewave {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One operand as rows along i (or j), whatever its major was.
template <class T>
struct Operand {
  const T* data = nullptr;
  std::int64_t row_stride = 0, k_stride = 0;  // one of them is 1
};

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
  constexpr std::int64_t kSquare = hn::MaxLanes(Quad<T>());
  const std::int64_t square_rows = rows / kSquare * kSquare, square_k = k / kSquare * kSquare;
  for (std::int64_t at = 0; at < square_k; at += kSquare) {
    for (std::int64_t r = 0; r < square_rows; r += kSquare)
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

// The problem with vectors along i: an n-major D swaps the roles of A and B.
template <class T>
struct Frame {
  explicit Frame(const GemmArgs& arguments) : args(arguments), swapped(args.d_major == Major::n), i(args.d.cols), j(args.d.rows) {
    const auto operand = [](const ConstMatrixView& view, Major major) {
      const std::int64_t ld = view.ld;
      return Operand<T>{.data = view.row<T>(0), .row_stride = major == Major::k ? ld : 1, .k_stride = major == Major::k ? 1 : ld};
    };
    const Operand<T> a = operand(args.a, args.a_major), b = operand(args.b, args.b_major);
    along_i = swapped ? b : a;
    along_j = swapped ? a : b;
    k = args.a_major == Major::k ? args.a.cols : args.a.rows;
  }

  const GemmArgs& args;
  bool swapped;
  std::int64_t i, j, k = 0;
  Operand<T> along_i, along_j;
};

// The formula of kernels/gemm.h over `count` neighbours in one row of D; z holds their sums.
template <class T>
void finish_row(const Frame<T>& frame, std::int64_t i, std::int64_t j, std::int64_t count, T* HWY_RESTRICT z) {
  const GemmArgs& args = frame.args;
  if (args.bias && frame.swapped) {
    const T bias = args.bias.row<T>(0)[j];
    for (std::int64_t x = 0; x < count; ++x) z[x] += bias;
  } else if (args.bias) {
    const T* HWY_RESTRICT bias = args.bias.row<T>(0) + i;
    for (std::int64_t x = 0; x < count; ++x) z[x] += bias[x];
  }
  if (args.saved_input) std::copy_n(z, count, args.saved_input.row<T>(j) + i);
  if (args.activation == Activation::relu) {
    for (std::int64_t x = 0; x < count; ++x) z[x] = relu(z[x]);
  } else if (args.activation != Activation::none) {
    for (std::int64_t x = 0; x < count; ++x) z[x] = activate(args.activation, z[x]);
  }
  if (args.derivative_of) {
    const T* HWY_RESTRICT of = args.derivative_of.row<T>(j) + i;
    if (args.derivative == Activation::relu) {
      for (std::int64_t x = 0; x < count; ++x) z[x] *= relu_derivative(of[x]);
    } else {
      for (std::int64_t x = 0; x < count; ++x) z[x] *= activation_derivative(args.derivative, of[x]);
    }
  }
  if (args.residual) {
    const T* HWY_RESTRICT residual = args.residual.row<T>(j) + i;
    for (std::int64_t x = 0; x < count; ++x) z[x] += residual[x];
  }
  T* HWY_RESTRICT d = args.d.row<T>(j) + i;
  if (args.accumulate) {
    for (std::int64_t x = 0; x < count; ++x) d[x] += z[x];
  } else {
    std::copy_n(z, count, d);
  }
}

template <class T>
class Launch {
 public:
  Launch(CpuQueue& queue, const GemmArgs& args, const GemmPlan& plan)
      : frame_(args), layout_(problem_of(args), plan.tile), pool_(*queue.threads), slots_(plan.tiling.slots) {
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
  void for_each(std::int64_t count, Fn&& fn) {
    if (frame_.i * frame_.j * frame_.k <= kAloneBelow) {
      for (std::int64_t index = 0; index < count; ++index) fn(index, 0);
    } else {
      pool_.parallel_for(count, fn);
    }
  }

  void pack(Span span_i, Span span_j) {
    const Panels<K::kWidthI> panels_i(span_i, layout_.tile_i);
    const Panels<K::kWidthJ> panels_j(span_j, layout_.tile_j);
    for_each(panels_i.count + panels_j.count, [&](std::int64_t index, int) {
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
    for_each(std::min(slots_, tiles_i * tiles_j), [&](std::int64_t slot, int) {
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

  static constexpr std::int64_t kAloneBelow = 1 << 20;  // multiply-adds: a smaller problem is done before other threads are awake

  Frame<T> frame_;
  PackedLayout layout_;
  ThreadPool& pool_;
  std::int64_t slots_;
  T* packed_i_;
  T* packed_j_;
  T* sums_;
};

void launch_f32(CpuQueue& queue, const GemmArgs& args, const GemmPlan& plan) { Launch<float>(queue, args, plan).run(); }
void launch_f64(CpuQueue& queue, const GemmArgs& args, const GemmPlan& plan) { Launch<double>(queue, args, plan).run(); }

}  // namespace HWY_NAMESPACE
}  // namespace tilewave
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tilewave {
namespace {

HWY_EXPORT(launch_f32);
HWY_EXPORT(launch_f64);

}  // namespace

void launch_packed_tiles(CpuQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  for (const ConstMatrixView& view :
       {args.bias, ConstMatrixView(args.saved_input), args.derivative_of, args.residual, ConstMatrixView(args.bias_gradient)}) {
    TW_CHECK(!view || view.dtype == args.d.dtype, "gemm ", name_of(args.role), ": packed_tiles wants every operand in one type; D is ",
             name_of(args.d.dtype), " and one of bias, saved_input, derivative_of, residual and bias gradient is ", name_of(view.dtype),
             ".");
  }
  if (args.d.dtype == DType::f32) {
    HWY_DYNAMIC_DISPATCH(launch_f32)(queue, args, plan);
  } else {
    HWY_DYNAMIC_DISPATCH(launch_f64)(queue, args, plan);
  }
}

}  // namespace tilewave
#endif

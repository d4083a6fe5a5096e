// From a warpgroup's sums to D: the formula of kernels/gemm.h, 16 rows by 64 columns of a warp at a time. What leaves goes straight
// from registers to memory, or through strips in shared memory, 16 rows of 128 bytes, swizzled, that the copy engine takes from
// there (and adds, where fp32 is accumulated). Side inputs are read where they lie. Nothing outside the matrices is touched.
#pragma once

#include "kernels/cuda/elements.h"
#include "kernels/cuda/prim/bulk_copy.h"
#include "kernels/cuda/prim/stmatrix.h"
#include "kernels/cuda/prim/tensor_map.h"
#include "kernels/cuda/prim/wgmma.h"
#include "kernels/gemm.h"
#include "kernels/math/activation.h"

namespace tilewave {

// A matrix that lies like D.
struct LikeD {
  std::byte* data = nullptr;
  std::int64_t ld = 0;
  DType dtype = DType::f32;
  bool pairs = false;   // two neighbours of an even column can be reached at once
  bool mapped = false;  // the copy engine can reach it
  bool ragged = false;  // its rows end within 16 bytes, all of which the engine would write
};

struct Vector {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  bool pairs = false;
};

struct WarpgroupEpilogue {
  CUtensorMap d_map, saved_input_map;  // strips of 16 rows by 128 bytes
  std::int64_t rows = 0, cols = 0;     // of D
  LikeD d, saved_input, derivative_of, residual;
  Vector bias;           // [cols]
  Vector bias_gradient;  // [rows]
  Activation activation = Activation::none, derivative = Activation::none;
  bool accumulate = false, accumulate_bias_gradient = false;
  bool plain = false;  // the sums go out through the copy engine as they are
};

inline WarpgroupEpilogue warpgroup_epilogue(const GemmArgs& args) {
  const auto like_d = [&](const ConstMatrixView& view) -> LikeD {
    const auto alignment = alignment_of(reinterpret_cast<std::uintptr_t>(view.data), view.ld * size_of(view.dtype));
    return {.data = static_cast<std::byte*>(const_cast<void*>(view.data)),
            .ld = view.ld,
            .dtype = view.dtype,
            .pairs = alignment >= 2 * size_of(view.dtype),
            .mapped = view.data != nullptr && alignment >= 16,
            .ragged = view.cols * size_of(view.dtype) % 16 != 0};
  };
  const auto vector = [](const ConstMatrixView& view) -> Vector {
    return {.data = static_cast<std::byte*>(const_cast<void*>(view.data)),
            .dtype = view.dtype,
            .pairs = reinterpret_cast<std::uintptr_t>(view.data) % static_cast<std::uintptr_t>(2 * size_of(view.dtype)) == 0};
  };
  WarpgroupEpilogue epilogue{.rows = args.d.rows,
                             .cols = args.d.cols,
                             .d = like_d(args.d),
                             .saved_input = like_d(args.saved_input),
                             .derivative_of = like_d(args.derivative_of),
                             .residual = like_d(args.residual),
                             .bias = vector(args.bias),
                             .bias_gradient = vector(args.bias_gradient),
                             .activation = args.activation,
                             .derivative = args.derivative,
                             .accumulate = args.accumulate,
                             .accumulate_bias_gradient = args.accumulate_bias_gradient};
  epilogue.plain = epilogue.d.mapped && !epilogue.d.ragged && !args.bias && !args.saved_input && !args.derivative_of && !args.residual &&
                   args.activation == Activation::none && (!args.accumulate || args.d.dtype == DType::f32);
  if (epilogue.d.mapped) epilogue.d_map = make_tensor_map(args.d, 16);
  if (epilogue.saved_input.mapped) epilogue.saved_input_map = make_tensor_map(args.saved_input, 16);
  return epilogue;
}

__device__ __forceinline__ float2 unpack(unsigned pair, DType dtype) {
  if (dtype == DType::bf16) return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
  return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}
__device__ __forceinline__ unsigned pack(float low, float high, DType dtype) {
  if (dtype == DType::bf16) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&pair);
  }
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}

__device__ __forceinline__ float load_element(const std::byte* data, DType dtype, std::int64_t at) {
  if (dtype == DType::f32) return reinterpret_cast<const float*>(data)[at];
  return unpack(reinterpret_cast<const unsigned short*>(data)[at], dtype).x;
}
__device__ __forceinline__ float2 load_pair(const std::byte* data, DType dtype, std::int64_t at) {
  if (dtype == DType::f32) return reinterpret_cast<const float2*>(data)[at / 2];
  return unpack(reinterpret_cast<const unsigned*>(data)[at / 2], dtype);
}
__device__ __forceinline__ void store_element(std::byte* data, DType dtype, std::int64_t at, float value) {
  if (dtype == DType::f32) {
    reinterpret_cast<float*>(data)[at] = value;
  } else {
    reinterpret_cast<unsigned short*>(data)[at] = static_cast<unsigned short>(pack(value, 0.0f, dtype));
  }
}

// A thread's share of 16 rows by 64 columns, as wgmma hands it out: z[4 g + 2 h] and the next are columns col + 8 g and the next
// of row row + 8 h.
inline constexpr int kShare = 32;
inline constexpr int kStripRows = 16, kShareColumns = 64, kStripBytes = kStripRows * 128;

template <class Fn>
__device__ __forceinline__ void for_each_in(float (&z)[kShare], Fn&& fn) {
#pragma unroll
  for (int i = 0; i < kShare; ++i) fn(z[i], i);
}

// fn(index into z, row, column, whether the next column is inside too) for every pair that begins inside D.
template <class Fn>
__device__ __forceinline__ void for_each_pair(const WarpgroupEpilogue& e, std::int64_t row, std::int64_t col, Fn&& fn) {
#pragma unroll
  for (int pair = 0; pair < kShare / 2; ++pair) {
    const std::int64_t r = row + pair % 2 * 8, c = col + pair / 2 * 8;
    if (r < e.rows && c < e.cols) fn(2 * pair, r, c, c + 1 < e.cols);
  }
}

// x = the share of a matrix that lies like D; elements outside keep what x holds.
__device__ __forceinline__ void load_share(const WarpgroupEpilogue& e, const LikeD& from, std::int64_t row, std::int64_t col,
                                           float (&x)[kShare]) {
  for_each_pair(e, row, col, [&](int i, std::int64_t r, std::int64_t c, bool next) {
    x[i] = load_element(from.data, from.dtype, r * from.ld + c);
    if (next) x[i + 1] = load_element(from.data, from.dtype, r * from.ld + c + 1);
  });
}

// What a share needs from memory besides its sums, as pairs of 16 bits, asked for all at once: the bias and the first side input.
// Where pairs cannot be had (edges, odd pitches, fp32) it stays empty and the share asks itself.
struct SideInputs {
  unsigned bias[kShare / 4];
  unsigned side[kShare / 2];
  bool has_bias = false, has_side = false;
};

__device__ __forceinline__ const LikeD& first_side(const WarpgroupEpilogue& e) {
  return e.derivative_of.data != nullptr ? e.derivative_of : e.residual.data != nullptr ? e.residual : e.d;
}

// For the share of the warp's 16 rows from `row` on by 64 columns from `col` on.
__device__ __forceinline__ void ask_for_inputs(const WarpgroupEpilogue& e, int row, int col, SideInputs& inputs) {
  const bool whole = row + kStripRows <= e.rows && col + kShareColumns <= e.cols;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t own_row = row + lane / 4, own_col = col + lane % 4 * 2;
  inputs.has_bias = whole && e.bias.data != nullptr && e.bias.pairs && e.bias.dtype != DType::f32;
  if (inputs.has_bias) {
    const auto* const at = reinterpret_cast<const unsigned*>(e.bias.data) + own_col / 2;
#pragma unroll
    for (int g = 0; g < kShare / 4; ++g) inputs.bias[g] = at[4 * g];
  }
  const LikeD& side = first_side(e);
  const bool wanted = e.derivative_of.data != nullptr || e.residual.data != nullptr || e.accumulate;
  inputs.has_side = whole && wanted && side.pairs && side.dtype != DType::f32;
  if (inputs.has_side) {
    const auto* const at = reinterpret_cast<const unsigned*>(side.data) + (own_row * side.ld + own_col) / 2;
    const std::int64_t below = 4 * side.ld;  // 8 rows
#pragma unroll
    for (int pair = 0; pair < kShare / 2; ++pair) inputs.side[pair] = at[pair % 2 * below + pair / 2 * 4];
  }
}

__device__ __forceinline__ void store_share(const WarpgroupEpilogue& e, const LikeD& to, std::int64_t row, std::int64_t col,
                                            const float (&z)[kShare], bool add) {
  for_each_pair(e, row, col, [&](int i, std::int64_t r, std::int64_t c, bool next) {
    const std::int64_t at = r * to.ld + c;
    float low = z[i], high = z[i + 1];
    if (add) low += load_element(to.data, to.dtype, at);
    if (add && next) high += load_element(to.data, to.dtype, at + 1);
    if (to.pairs && next && to.dtype != DType::f32) {
      reinterpret_cast<unsigned*>(to.data)[at / 2] = pack(low, high, to.dtype);
    } else if (to.pairs && next) {
      *reinterpret_cast<float2*>(to.data + 4 * at) = {low, high};
    } else {
      store_element(to.data, to.dtype, at, low);
      if (next) store_element(to.data, to.dtype, at + 1, high);
    }
  });
}

// A warp's strips, taken in turn; none for a row that writes from its registers.
template <int kStrips>
struct WarpStrips {
  std::byte* first = nullptr;  // [kStrips, 16 rows, 128 bytes], swizzled
  int turn = 0;

  __device__ __forceinline__ std::byte* next() {
    if (threadIdx.x % 32 == 0) wait_boxes_read<kStrips - 1>();
    __syncwarp();
    std::byte* const strip = first + turn * kStripBytes;
    turn = turn + 1 == kStrips ? 0 : turn + 1;
    return strip;
  }
  __device__ __forceinline__ void send(const CUtensorMap& map, const std::byte* strip, int row, int col, bool add) {
    fence_shared_for_engines();
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      if (add) {
        add_box(map, strip, col, row);
      } else {
        store_box(map, strip, col, row);
      }
      commit_boxes();
    }
  }

  // The warp's 16 rows from `row` on by 64 columns from `col` on.
  __device__ __forceinline__ void put(const CUtensorMap& map, DType dtype, int row, int col, const float (&z)[kShare], bool add) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (dtype != DType::f32) {
      std::byte* const strip = next();
      std::byte* const line = strip + lane % 16 * 128;
#pragma unroll
      for (int g = 0; g < 8; g += 2) {
        store_matrices(line + ((g + lane / 16) ^ lane % 8) * 16, pack(z[4 * g], z[4 * g + 1], dtype),
                       pack(z[4 * g + 2], z[4 * g + 3], dtype), pack(z[4 * g + 4], z[4 * g + 5], dtype),
                       pack(z[4 * g + 6], z[4 * g + 7], dtype));
      }
      send(map, strip, row, col, add);
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        std::byte* const strip = next();
        std::byte* const line = strip + lane / 4 * 128 + lane % 2 * 8;
#pragma unroll
        for (int g = 0; g < 4; ++g) {
          const int i = 16 * half + 4 * g, at = ((2 * g + lane % 4 / 2) ^ lane / 4) * 16;
          *reinterpret_cast<float2*>(line + at) = {z[i], z[i + 1]};
          *reinterpret_cast<float2*>(line + at + 8 * 128) = {z[i + 2], z[i + 3]};
        }
        send(map, strip, row, col + 32 * half, add);
      }
    }
  }
};
template <>
struct WarpStrips<0> {};

// Finishes the warp's 16 rows from `row` on by 64 columns from `col` on.
template <int kStrips>
__device__ __forceinline__ void finish_share(const WarpgroupEpilogue& e, WarpStrips<kStrips>& strips, int row, int col, float (&z)[kShare],
                                             const SideInputs& inputs) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t own_row = row + lane / 4, own_col = col + lane % 4 * 2;
  const bool fp32 = e.d.dtype == DType::f32;
  const auto put = [&](const LikeD& to, const CUtensorMap& map, bool add) {
    if constexpr (kStrips > 0) {
      if (to.mapped && !(to.ragged && col + kShareColumns > e.cols)) return strips.put(map, to.dtype, row, col, z, add);
    }
    store_share(e, to, own_row, own_col, z, add);
  };
  const auto load_side = [&](const LikeD& from, float(&x)[kShare]) {
    if (inputs.has_side && &from == &first_side(e)) {
#pragma unroll
      for (int pair = 0; pair < kShare / 2; ++pair) {
        const float2 both = unpack(inputs.side[pair], from.dtype);
        x[2 * pair] = both.x;
        x[2 * pair + 1] = both.y;
      }
    } else {
      for_each_in(x, [](float& y, int) { y = 0.0f; });
      load_share(e, from, own_row, own_col, x);
    }
  };

  if (e.bias.data != nullptr) {
#pragma unroll
    for (int g = 0; g < kShare / 4; ++g) {
      const std::int64_t c = own_col + 8 * g;
      float2 bias = {0.0f, 0.0f};
      if (inputs.has_bias) {
        bias = unpack(inputs.bias[g], e.bias.dtype);
      } else {
        if (c < e.cols) bias.x = load_element(e.bias.data, e.bias.dtype, c);
        if (c + 1 < e.cols) bias.y = load_element(e.bias.data, e.bias.dtype, c + 1);
      }
      z[4 * g] += bias.x;
      z[4 * g + 1] += bias.y;
      z[4 * g + 2] += bias.x;
      z[4 * g + 3] += bias.y;
    }
  }
  if (e.saved_input.data != nullptr) put(e.saved_input, e.saved_input_map, false);
  switch (e.activation) {
    case Activation::none:
      break;
    case Activation::relu:
      for_each_in(z, [](float& x, int) { x = relu(x); });
      break;
    case Activation::gelu_tanh:
      for_each_in(z, [](float& x, int) { x = gelu_tanh(x); });
      break;
    case Activation::gelu_erf:
      for_each_in(z, [](float& x, int) { x = gelu_erf(x); });
      break;
  }
  if (e.derivative_of.data != nullptr) {
    float x[kShare];
    load_side(e.derivative_of, x);
    switch (e.derivative) {
      case Activation::none:
        break;
      case Activation::relu:
        for_each_in(z, [&](float& y, int i) { y *= relu_derivative(x[i]); });
        break;
      case Activation::gelu_tanh:
        for_each_in(z, [&](float& y, int i) { y *= gelu_tanh_derivative(x[i]); });
        break;
      case Activation::gelu_erf:
        for_each_in(z, [&](float& y, int i) { y *= gelu_erf_derivative(x[i]); });
        break;
    }
  }
  if (e.residual.data != nullptr) {
    float x[kShare];
    load_side(e.residual, x);
    for_each_in(z, [&](float& y, int i) { y += x[i]; });
  }
  if (e.accumulate && !fp32) {  // added before the one rounding; fp32 is added where it is stored
    float x[kShare];
    load_side(e.d, x);
    for_each_in(z, [&](float& y, int i) { y += x[i]; });
  }
  put(e.d, e.d_map, e.accumulate && fp32);
}

// Finishes a warpgroup's kBlocks times 64 rows from `row` on by 2 kColumns columns from `col` on. Sums that go out as they are
// leave at once. Otherwise the code of a share stands once, and its sums are picked out of the
// registers, since a register has no index.
template <int kBlocks, int kColumns, int kStrips>
__device__ __forceinline__ void finish_sums(const WarpgroupEpilogue& e, WarpStrips<kStrips>& strips, int row, int col,
                                            const float (&sums)[kBlocks][kColumns]) {
  constexpr int kShares = kColumns / kShare;  // of a block
  const int warp_row = row + static_cast<int>(threadIdx.x / 32 % 4) * kStripRows;
  if constexpr (kStrips > 0) {
    if (e.plain) {
#pragma unroll
      for (int share = 0; share < kBlocks * kShares; ++share) {
        const int share_row = warp_row + share / kShares * kBox, share_col = col + share % kShares * kShareColumns;
        if (share_row >= e.rows || share_col >= e.cols) continue;
        float z[kShare];
        for_each_in(z, [&](float& x, int i) { x = sums[share / kShares][share % kShares * kShare + i]; });
        strips.put(e.d_map, e.d.dtype, share_row, share_col, z, e.accumulate);
      }
      return;
    }
  }
#pragma unroll 1
  for (int share = 0; share < kBlocks * kShares; ++share) {
    const int share_row = warp_row + share / kShares * kBox, share_col = col + share % kShares * kShareColumns;
    if (share_row >= e.rows || share_col >= e.cols) continue;
    SideInputs inputs;
    ask_for_inputs(e, share_row, share_col, inputs);
    float z[kShare];
#pragma unroll
    for (int at = 0; at < kBlocks * kShares; ++at) {
      if (at == share) {
        asm volatile("");  // a branch, not a selection of every candidate
        for_each_in(z, [&](float& x, int i) { x = sums[at / kShares][at % kShares * kShare + i]; });
      }
    }
    finish_share(e, strips, share_row, share_col, z, inputs);
  }
}

__device__ __forceinline__ void store_bias_gradient(const WarpgroupEpilogue& e, std::int64_t row, float sum) {
  if (row >= e.rows) return;
  const float before = e.accumulate_bias_gradient ? load_element(e.bias_gradient.data, e.bias_gradient.dtype, row) : 0.0f;
  store_element(e.bias_gradient.data, e.bias_gradient.dtype, row, before + sum);
}

// fn(row, sum) once for each of a warpgroup's 64 rows, from its sums of the row operand over K.
template <class Fn>
__device__ __forceinline__ void for_each_row_sum(const float (&sums)[4], Fn&& fn) {
  const int row = static_cast<int>(threadIdx.x / 32 % 4) * kStripRows + static_cast<int>(threadIdx.x % 32 / 4);
  if (threadIdx.x % 4 != 0) return;
  fn(row, sums[0]);
  fn(row + 8, sums[2]);
}

__device__ __forceinline__ void finish_bias_gradient(const WarpgroupEpilogue& e, int row, const float (&sums)[4]) {
  for_each_row_sum(sums, [&](int own, float sum) { store_bias_gradient(e, row + own, sum); });
}

}  // namespace tilewave

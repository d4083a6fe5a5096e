// What happens to sums before they are stored (the formula of kernels/gemm/gemm.h) in the rows without wgmma (the others have
// warpgroup_epilogue.h): D and all that has its shape are seen as they lie in memory, rows x cols, each of its own type and pitch, chosen
// by uniform branches at run time; arithmetic in T. Also the fixed-order reduction of sums that were split along K: each part lies in the
// workspace as an fp32 (fp64) matrix.
#pragma once

#include <algorithm>

#include "kernels/cuda/core/elements.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/gemm/factor.h"
#include "kernels/cuda/prim/check.h"
#include "kernels/gemm/facts/split.h"
#include "kernels/gemm/gemm.h"
#include "kernels/math/activation.h"

namespace tilewave {

inline constexpr int kRun = 8;  // columns that a thread finishes at a time where rows start on 16 bytes

struct Plane {
  void* data = nullptr;
  std::int64_t ld = 0;
  DType dtype = DType::f32;
};

struct GemmEpilogue {
  std::int64_t rows = 0, cols = 0;
  Plane d, saved_input, derivative_of, residual;  // [rows, cols]
  Plane bias;                                     // [1, cols], or [1, rows] where it runs along rows
  Plane bias_gradient;                            // [1, N]
  Factor alpha, beta;
  bool bias_along_rows = false;
  bool accumulate = false, accumulate_bias_gradient = false;
  bool wide = false;  // kRun elements of every plane from a column that kRun divides on are whole 16-byte words
  Activation activation = Activation::none, derivative = Activation::none;
};

inline GemmEpilogue epilogue_of(const GemmArgs& args) {
  const bool fp64 = args.a.dtype == DType::f64;
  const auto plane = [&](const char* name, const ConstMatrixView& view) {
    TW_CHECK(!view || !fp64 || view.dtype == DType::f64, "gemm ", name_of(args.role), ": ", name, " is ", name_of(view.dtype),
             "; with operands of f64 it must be f64.");
    if (!fp64) check_converted(name, view);
    return Plane{.data = const_cast<void*>(view.data), .ld = view.ld, .dtype = view.dtype};
  };
  const bool along_m = args.d_major == Major::m;
  GemmEpilogue e = {.rows = args.d.rows,
                    .cols = args.d.cols,
                    .d = plane("D", args.d),
                    .saved_input = plane("saved_input", args.saved_input),
                    .derivative_of = plane("derivative_of", args.derivative_of),
                    .residual = plane("the residual", args.residual),
                    .bias = plane("the bias", args.bias),
                    .bias_gradient = plane("the bias gradient", args.bias_gradient),
                    .alpha = Factor::of(args.alpha),
                    .beta = Factor::of(args.beta),
                    .bias_along_rows = !along_m,
                    .accumulate = args.accumulate,
                    .accumulate_bias_gradient = args.accumulate_bias_gradient,
                    .activation = args.activation,
                    .derivative = args.derivative};
  const auto wide = [](const Plane& p) {
    return p.data == nullptr || alignment_of(reinterpret_cast<std::uintptr_t>(p.data), p.ld * size_of(p.dtype)) >= 16;
  };
  const bool wide_bias = e.bias_along_rows || reinterpret_cast<std::uintptr_t>(e.bias.data) % 16 == 0;
  e.wide = wide(e.d) && wide(e.saved_input) && wide(e.derivative_of) && wide(e.residual) && wide_bias;
  return e;
}

template <class T>
__device__ __forceinline__ T load_element(const Plane& p, std::int64_t at) {
  if constexpr (std::is_same_v<T, double>) {
    return static_cast<const double*>(p.data)[at];
  } else {
    if (p.dtype == DType::f32) return static_cast<const float*>(p.data)[at];
    if (p.dtype == DType::bf16) return load(static_cast<const bf16*>(p.data)[at]);
    return load(static_cast<const f16*>(p.data)[at]);
  }
}
template <class T>
__device__ __forceinline__ void store_element(const Plane& p, std::int64_t at, T value) {
  if constexpr (std::is_same_v<T, double>) {
    static_cast<double*>(p.data)[at] = value;
  } else {
    if (p.dtype == DType::f32) {
      static_cast<float*>(p.data)[at] = value;
    } else if (p.dtype == DType::bf16) {
      static_cast<bf16*>(p.data)[at] = store<bf16>(value);
    } else {
      static_cast<f16*>(p.data)[at] = store<f16>(value);
    }
  }
}

// kWidth elements from `at` on: one, or kRun in 16-byte words.
template <int kWidth, class T>
__device__ __forceinline__ void load_run(const Plane& p, std::int64_t at, T (&values)[kWidth]) {
  if constexpr (kWidth == 1 || std::is_same_v<T, double>) {
#pragma unroll
    for (int c = 0; c < kWidth; ++c) values[c] = load_element<T>(p, at + c);
  } else if (p.dtype == DType::f32) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float4 word = reinterpret_cast<const float4*>(static_cast<const float*>(p.data) + at)[half];
      values[4 * half] = word.x, values[4 * half + 1] = word.y, values[4 * half + 2] = word.z, values[4 * half + 3] = word.w;
    }
  } else {
    const uint4 word = *reinterpret_cast<const uint4*>(static_cast<const bf16*>(p.data) + at);
    const unsigned pairs[] = {word.x, word.y, word.z, word.w};
#pragma unroll
    for (int c = 0; c < kWidth; ++c) {
      const auto bits = static_cast<unsigned short>(pairs[c / 2] >> (16 * (c % 2)));
      values[c] = p.dtype == DType::bf16 ? __uint_as_float(static_cast<unsigned>(bits) << 16) : __half2float(__ushort_as_half(bits));
    }
  }
}
template <int kWidth, class T>
__device__ __forceinline__ void store_run(const Plane& p, std::int64_t at, const T (&values)[kWidth]) {
  if constexpr (kWidth == 1 || std::is_same_v<T, double>) {
#pragma unroll
    for (int c = 0; c < kWidth; ++c) store_element<T>(p, at + c, values[c]);
  } else if (p.dtype == DType::f32) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      reinterpret_cast<float4*>(static_cast<float*>(p.data) + at)[half] =
          make_float4(values[4 * half], values[4 * half + 1], values[4 * half + 2], values[4 * half + 3]);
    }
  } else {
    unsigned pairs[4];
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      const float low = values[2 * pair], high = values[2 * pair + 1];
      if (p.dtype == DType::bf16) {
        pairs[pair] = store<bf16>(low).bits | static_cast<unsigned>(store<bf16>(high).bits) << 16;
      } else {
        pairs[pair] = store<f16>(low).bits | static_cast<unsigned>(store<f16>(high).bits) << 16;
      }
    }
    *reinterpret_cast<uint4*>(static_cast<bf16*>(p.data) + at) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
}

// Where a thread's sums lie in D. InRow: neighbours in a row, in 16-byte words where there are kRun of them and e.wide holds.
template <int kWidth>
struct InRow {
  static constexpr int kCount = kWidth;
  std::int64_t row = 0, col = 0;
  bool inside = true;  // what is outside is neither read nor written

  template <class T>
  __device__ __forceinline__ void load(const Plane& p, T (&values)[kCount]) const {
    if (inside) load_run(p, row * p.ld + col, values);
  }
  template <class T>
  __device__ __forceinline__ void store(const Plane& p, const T (&values)[kCount]) const {
    if (inside) store_run(p, row * p.ld + col, values);
  }
  template <class T>
  __device__ __forceinline__ void load_bias(const Plane& bias, bool along_rows, T (&values)[kCount]) const {
    if (!along_rows) return load_run(bias, col, values);
    values[0] = inside ? load_element<T>(bias, row) : T(0);
#pragma unroll
    for (int c = 1; c < kCount; ++c) values[c] = values[0];
  }
};

// Strip: kRun elements, every 32nd of a row and then of the rows below, so that a warp's lanes hold neighbours: for rows that start
// anywhere, and for the edges of D. What lies outside is left alone.
template <int kAcross>
struct StridedRun {
  static constexpr int kCount = kRun;
  std::int64_t row = 0, col = 0;     // of element 0
  std::int64_t stride = 1;           // from one of its rows to the next
  int begin = 0, end = 0, cols = 0;  // of its rows and of D's columns from there on

  __device__ __forceinline__ bool valid(int c) const { return begin <= c / kAcross && c / kAcross < end && c % kAcross * 32 < cols; }
  __device__ __forceinline__ std::int64_t at(const Plane& p, int c) const {
    return (row + stride * (c / kAcross)) * p.ld + col + c % kAcross * 32;
  }

  template <class T>
  __device__ __forceinline__ void load(const Plane& p, T (&values)[kCount]) const {
    const auto all = [&](auto read) {
#pragma unroll
      for (int c = 0; c < kCount; ++c) values[c] = valid(c) ? read(at(p, c)) : T(0);
    };
    if (p.dtype == DType::f32) {
      all([&](std::int64_t i) { return static_cast<const float*>(p.data)[i]; });
    } else if (p.dtype == DType::bf16) {
      all([&](std::int64_t i) { return tilewave::load(static_cast<const bf16*>(p.data)[i]); });
    } else {
      all([&](std::int64_t i) { return tilewave::load(static_cast<const f16*>(p.data)[i]); });
    }
  }
  template <class T>
  __device__ __forceinline__ void store(const Plane& p, const T (&values)[kCount]) const {
    const auto all = [&](auto* data, auto convert) {
#pragma unroll
      for (int c = 0; c < kCount; ++c) {
        if (valid(c)) data[at(p, c)] = convert(values[c]);
      }
    };
    if (p.dtype == DType::f32) {
      all(static_cast<float*>(p.data), [](float z) { return z; });
    } else if (p.dtype == DType::bf16) {
      all(static_cast<bf16*>(p.data), [](float z) { return tilewave::store<bf16>(z); });
    } else {
      all(static_cast<f16*>(p.data), [](float z) { return tilewave::store<f16>(z); });
    }
  }
  template <class T>
  __device__ __forceinline__ void load_bias(const Plane& bias, bool along_rows, T (&values)[kCount]) const {
#pragma unroll
    for (int c = 0; c < kCount; ++c) {
      values[c] = valid(c) ? load_element<T>(bias, along_rows ? row + stride * (c / kAcross) : col + c % kAcross * 32) : T(0);
    }
  }
};

// fn<activation, type that its value is rounded to>(c) for each of a thread's sums, the branches outside the loop.
template <int kWidth, class T, class Fn>
__device__ __forceinline__ void with_activation(Activation activation, bool to_bf16, Fn&& fn) {
  const auto all = [&]<Activation kActivation, class To>() {
#pragma unroll
    for (int c = 0; c < kWidth; ++c) fn.template operator()<kActivation, To>(c);
  };
  if (activation == Activation::relu) {
    all.template operator()<Activation::relu, T>();
  } else if (activation == Activation::gelu_tanh) {
    if (std::is_same_v<T, float> && to_bf16) {
      all.template operator()<Activation::gelu_tanh, bf16>();
    } else {
      all.template operator()<Activation::gelu_tanh, T>();
    }
  } else if (activation == Activation::gelu_erf) {
    all.template operator()<Activation::gelu_erf, T>();
  }
}

// Stores a thread's sums z[x], which lie at places[x] of D. What is read beside them is asked for at once.
template <class Location, int kLocations, class T, int kWidth = Location::kCount>
__device__ __forceinline__ void finish(const GemmEpilogue& e, const Location (&locations)[kLocations],
                                       T (&z)[kLocations][Location::kCount]) {
  T other[kLocations][kWidth];
  const auto all = [&](auto&& fn) {
#pragma unroll
    for (int x = 0; x < kLocations; ++x) fn(locations[x], z[x], other[x]);
  };
  const auto add = [&](const Plane& p, T factor) {
    all([&](const Location& location, auto&, T(&o)[kWidth]) { location.load(p, o); });
    all([&](const Location&, T(&sums)[kWidth], T(&o)[kWidth]) {
#pragma unroll
      for (int c = 0; c < kWidth; ++c) sums[c] += factor * o[c];
    });
  };
  const T alpha = e.alpha.load<T>();
  all([&](const Location&, T(&sums)[kWidth], auto&) {
#pragma unroll
    for (int c = 0; c < kWidth; ++c) sums[c] *= alpha;
  });
  if (e.bias.data != nullptr) {
    all([&](const Location& location, T(&sums)[kWidth], T(&o)[kWidth]) {
      location.load_bias(e.bias, e.bias_along_rows, o);
#pragma unroll
      for (int c = 0; c < kWidth; ++c) sums[c] += o[c];
    });
  }
  if (e.saved_input.data != nullptr) all([&](const Location& location, T(&sums)[kWidth], auto&) { location.store(e.saved_input, sums); });
  const bool to_bf16 = e.d.dtype == DType::bf16 && e.residual.data == nullptr && !e.accumulate;
  with_activation<kWidth, T>(e.activation, to_bf16, [&]<Activation kActivation, class To>(int c) {
    all([&](const Location&, T(&sums)[kWidth], auto&) { sums[c] = activate_to<To>(kActivation, sums[c]); });
  });
  if (e.derivative_of.data != nullptr) {
    all([&](const Location& location, auto&, T(&o)[kWidth]) { location.load(e.derivative_of, o); });
    with_activation<kWidth, T>(e.derivative, to_bf16, [&]<Activation kActivation, class To>(int c) {
      all([&](const Location&, T(&sums)[kWidth], T(&o)[kWidth]) { sums[c] *= activation_derivative_to<To>(kActivation, o[c]); });
    });
  }
  if (e.residual.data != nullptr) add(e.residual, e.beta.load<T>());
  if (e.accumulate) add(e.d, T(1));
  all([&](const Location& location, T(&sums)[kWidth], auto&) { location.store(e.d, sums); });
}
template <int kWidth, class T>
__device__ __forceinline__ void finish(const GemmEpilogue& e, std::int64_t row, std::int64_t col, T (&z)[kWidth]) {
  const InRow<kWidth> location[] = {{.row = row, .col = col}};
  finish(e, location, reinterpret_cast<T(&)[1][kWidth]>(z));
}

// Asks the second-level cache for what the epilogue of a tile will read, long before it does.
template <int kRows, int kCols, int kThreads>
__device__ __forceinline__ void prefetch_sides(const GemmEpilogue& e, std::int64_t row, std::int64_t col, int thread) {
  const auto prefetch = [&](const Plane& p) {
    const int in_line = p.dtype == DType::f32 ? 32 : 64, lines = kCols / in_line;  // elements of 128 bytes, and those of a row
#pragma unroll 1
    for (int x = thread; x < kRows * lines; x += kThreads) {
      const std::int64_t r = row + x / lines, c = col + x % lines * in_line;
      if (r >= e.rows || c >= e.cols) continue;
      const char* const line = static_cast<const char*>(p.data) + (r * p.ld + c) * (p.dtype == DType::f32 ? 4 : 2);
      asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
    }
  };
  if (e.derivative_of.data != nullptr) prefetch(e.derivative_of);
  if (e.residual.data != nullptr) prefetch(e.residual);
  if (e.accumulate) prefetch(e.d);
}

template <class T>
__device__ __forceinline__ void finish_bias_gradient(const GemmEpilogue& e, std::int64_t n, T sum) {
  if (e.accumulate_bias_gradient) sum += load_element<T>(e.bias_gradient, n);
  store_element(e.bias_gradient, n, sum);
}

// Where the parts of a split sum lie: part s is a [rows, pitch] matrix of T, then come the parts of the bias gradient, [rows] each
// (or [cols] where N runs along the columns).
template <class T>
struct SplitKPartials {
  T* parts = nullptr;
  std::int64_t pitch = 0, part = 0;  // elements of a row, and from one part to the next
  T* bias_gradients = nullptr;
  std::int64_t n = 0;

  SplitKPartials(void* workspace, std::int64_t rows, std::int64_t cols, std::int64_t split, std::int64_t size_n)
      : parts(static_cast<T*>(workspace)),
        pitch(round_up(cols, kSplitPitch)),
        part(rows * pitch),
        bias_gradients(parts + split * part),
        n(size_n) {}
  SplitKPartials(void* workspace, const GemmEpilogue& e, std::int64_t split, std::int64_t size_n)
      : SplitKPartials(workspace, e.rows, e.cols, split, size_n) {}

  // An element of the bias gradient: the sum of it in parts 0, `step` and so on, in order.
  __device__ T bias_gradient(std::int64_t split, std::int64_t step, std::int64_t index) const {
    T sum = 0;
    for (std::int64_t s = 0; s < split; ++s) sum += bias_gradients[s * step * n + index];
    return sum;
  }

  // The epilogue of one part: it is stored, and that is all.
  __host__ __device__ GemmEpilogue of_part(const GemmEpilogue& e, std::int64_t s) const {
    GemmEpilogue only;
    only.rows = e.rows;
    only.cols = e.cols;
    only.d = {.data = parts + s * part, .ld = pitch, .dtype = sizeof(T) == 8 ? DType::f64 : DType::f32};
    only.wide = true;
    if (e.bias_gradient.data != nullptr) only.bias_gradient = {.data = bias_gradients + s * n, .ld = n, .dtype = only.d.dtype};
    return only;
  }
};

// Adds kWidth sums, `at` elements from the beginning of part 0, and as far behind in part `step` and so on, in order, and finishes those
// that lie in D.
template <int kWidth, class T>
__device__ __forceinline__ void finish_partials(const GemmEpilogue& e, std::int64_t row, std::int64_t col, const SplitKPartials<T>& sums,
                                                std::int64_t split, std::int64_t step, std::int64_t at) {
  constexpr int kAtOnce = 4;  // parts that are asked for before the first of them is added
  T z[kWidth] = {};
  for (std::int64_t first = 0; first < split; first += kAtOnce) {
    T parts[kAtOnce][kWidth];
#pragma unroll
    for (int s = 0; s < kAtOnce; ++s) {
      if (first + s >= split) break;
      load_run({.data = sums.parts + (first + s) * step * sums.part, .dtype = sizeof(T) == 8 ? DType::f64 : DType::f32}, at, parts[s]);
    }
#pragma unroll
    for (int s = 0; s < kAtOnce; ++s) {
      if (first + s >= split) break;
#pragma unroll
      for (int c = 0; c < kWidth; ++c) z[c] += parts[s][c];
    }
  }
  if (kWidth == 1 || col + kWidth <= e.cols) {
    finish(e, row, col, z);
  } else {
#pragma unroll
    for (int c = 0; c < kWidth; ++c) {
      T one[1] = {z[c]};
      if (col + c < e.cols) finish(e, row, col + c, one);
    }
  }
}

// All of D, from the parts of a split.
template <class T>
void reduce_split_k(CudaQueue& queue, const GemmEpilogue& e, const SplitKPartials<T>& sums, std::int64_t split);

extern template void reduce_split_k<float>(CudaQueue&, const GemmEpilogue&, const SplitKPartials<float>&, std::int64_t);
extern template void reduce_split_k<double>(CudaQueue&, const GemmEpilogue&, const SplitKPartials<double>&, std::int64_t);

}  // namespace tilewave

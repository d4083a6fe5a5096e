// From a warpgroup's sums to D: the formula of kernels/gemm/gemm.h, a warp's 16 rows by 64 columns at a time. Through the warp's strips
// where everything of D's shape has the operands' 16-bit type, or nothing but the sums is stored: side inputs are asked for before the
// main loop, and nothing of it stays in registers beside the sums. Anything else goes element by element, neighbours together.
#pragma once

#include "kernels/cuda/gemm/factor.h"
#include "kernels/cuda/gemm/sm90/warp_strips.h"
#include "kernels/cuda/prim/register_index.h"
#include "kernels/cuda/prim/tensor_map.h"
#include "kernels/cuda/prim/wgmma.h"
#include "kernels/gemm/gemm.h"
#include "kernels/math/activation.h"

namespace tilewave {

struct Vector {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
};

struct WarpgroupEpilogue {
  CUtensorMap d_map, saved_input_map, side_map;  // strips
  int rows = 0, cols = 0;                        // of D
  LikeD d, saved_input, derivative_of, residual;
  Vector bias;           // [cols], or [rows]
  Vector bias_gradient;  // [rows]
  Factor alpha, beta;
  Activation activation = Activation::none, derivative = Activation::none;
  bool bias_along_rows = false, accumulate = false, accumulate_bias_gradient = false;
  bool through_staging = false;      // up to the columns that the engine can store
  bool has_side = false;             // one of derivative_of, residual and D comes in through the strips
  bool stores_accumulators = false;  // nothing but the sums, through the strips; in fp32 they may be added to D
};

inline WarpgroupEpilogue warpgroup_epilogue(const GemmArgs& args) {
  check_converted("D", args.d);
  check_converted("saved_input", args.saved_input);
  check_converted("derivative_of", args.derivative_of);
  check_converted("the residual", args.residual);
  check_converted("the bias", args.bias);
  check_converted("the bias gradient", args.bias_gradient);
  // The engine would write the whole of a row's last 16 bytes, and a bias is read so.
  const bool cuts = !args.owns_gaps || (args.bias && args.d_major == Major::m);
  const auto whole_words = [&](ConstMatrixView view) {
    if (cuts) view.cols -= view.cols % (16 / size_of(view.dtype));
    return view;
  };
  const auto like_d = [&](const ConstMatrixView& view) -> LikeD {
    const auto alignment = alignment_of(reinterpret_cast<std::uintptr_t>(view.data), view.ld * size_of(view.dtype));
    return {.data = static_cast<std::byte*>(const_cast<void*>(view.data)),
            .ld = view.ld,
            .dtype = view.dtype,
            .mapped_cols = view.data != nullptr && alignment >= 16 ? static_cast<int>(whole_words(view).cols) : 0};
  };
  const auto vector = [](const ConstMatrixView& view) -> Vector {
    return {.data = static_cast<std::byte*>(const_cast<void*>(view.data)), .dtype = view.dtype};
  };
  WarpgroupEpilogue epilogue{.rows = static_cast<int>(args.d.rows),
                             .cols = static_cast<int>(args.d.cols),
                             .d = like_d(args.d),
                             .saved_input = like_d(args.saved_input),
                             .derivative_of = like_d(args.derivative_of),
                             .residual = like_d(args.residual),
                             .bias = vector(args.bias),
                             .bias_gradient = vector(args.bias_gradient),
                             .alpha = Factor::of(args.alpha),
                             .beta = Factor::of(args.beta),
                             .activation = args.activation,
                             .derivative = args.derivative,
                             .bias_along_rows = args.d_major == Major::n,
                             .accumulate = args.accumulate,
                             .accumulate_bias_gradient = args.accumulate_bias_gradient};

  // Through the strips: sums alone; or 16 bits of one type, with an activation or one side input that the engine reaches.
  const bool fp32 = args.d.dtype == DType::f32;
  const ConstMatrixView sides[] = {args.derivative_of, args.residual,
                                   args.accumulate && !fp32 ? ConstMatrixView(args.d) : ConstMatrixView{}};
  ConstMatrixView side;
  int count = 0;
  for (const ConstMatrixView& one : sides) {
    if (one) side = one, ++count;
  }
  const bool activates = args.saved_input || args.activation != Activation::none;
  const auto fits = [&](const ConstMatrixView& view) { return !view || view.dtype == args.d.dtype; };
  const bool fits_bias = fits(args.bias) && reinterpret_cast<std::uintptr_t>(args.bias.data) % 4 == 0;
  const bool fits_side = count == 0 || (count == 1 && !activates && fits(side) && like_d(side).mapped_cols > 0);
  epilogue.through_staging = like_d(args.d).mapped_cols > 0 && (!args.saved_input || like_d(args.saved_input).mapped_cols > 0) &&
                             ((!args.bias && !activates && count == 0) || (!fp32 && fits_bias && fits(args.saved_input) && fits_side));
  epilogue.has_side = epilogue.through_staging && count == 1;
  epilogue.stores_accumulators = epilogue.through_staging && !args.bias && !activates && count == 0;
  if (epilogue.through_staging) epilogue.d_map = make_tensor_map(whole_words(args.d), kSubtileRows);
  if (epilogue.through_staging && args.saved_input) epilogue.saved_input_map = make_tensor_map(whole_words(args.saved_input), kSubtileRows);
  if (epilogue.has_side) epilogue.side_map = make_tensor_map(side, kSubtileRows);
  return epilogue;
}

// Sends a subtile's accumulators to D, in 16 bits or, with `add` to what is there, in fp32.
template <class T, class Staging>
__device__ __forceinline__ void put_accumulators(const WarpgroupEpilogue& e, Staging& staging, const SubtileAt& at,
                                                 const float (&z)[kSubtileValues], bool add) {
  if (e.d.dtype == DType::f32) return staging.put(e.d_map, at, z, add);
  staging.template put<T>(staging.next(), e.d_map, at, z);
}

// Whether columns of D from `col` on, so many, pass through the strips: TMA reaches all of them.
__device__ __forceinline__ bool goes_through_staging(const WarpgroupEpilogue& e, int col, int columns) {
  return e.through_staging && min(col + columns, e.cols) <= e.d.mapped_cols;
}

// A thread's accumulators, four at a time, as partial sums come and go.
__device__ __forceinline__ float4 four_of(const float* accumulators) {
  return {accumulators[0], accumulators[1], accumulators[2], accumulators[3]};
}
__device__ __forceinline__ void add_four(float* accumulators, const float4& more) {
  accumulators[0] += more.x, accumulators[1] += more.y, accumulators[2] += more.z, accumulators[3] += more.w;
}

// A consumer's accumulators by alpha.
template <int kMmaTiles, int kCount>
__device__ __forceinline__ void scale(const Factor& alpha, float (&accumulators)[kMmaTiles][kCount]) {
  if (alpha.is_one()) return;
  const float factor = alpha.load<float>();
#pragma unroll
  for (int i = 0; i < kMmaTiles * kCount; ++i) accumulators[i / kCount][i % kCount] *= factor;
}

// Waits for a consumer's MMAs: its accumulators are alpha A B then. A kernel with several forms calls it in each one's branch; behind their
// join ptxas would serialise wgmma.
template <int kMmaTiles, int kCount>
__device__ __forceinline__ void end_mmas(const Factor& alpha, float (&accumulators)[kMmaTiles][kCount]) {
  wgmma_wait<0>();
  scale(alpha, accumulators);
}

// The bias of a share as it lies in memory: of its columns, two by two, or of its two rows.
struct SubtileBias {
  unsigned pairs[kSubtileValues / 4];
};

__device__ __forceinline__ void load_bias_async(const WarpgroupEpilogue& e, int row, int col, SubtileBias& bias) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (e.bias_along_rows) {
    const auto* const at = reinterpret_cast<const unsigned short*>(e.bias.data) + row + lane / 4;
#pragma unroll
    for (int h = 0; h < 2; ++h) bias.pairs[h] = row + lane / 4 + 8 * h < e.rows ? at[8 * h] : 0;
  } else {  // columns end with a whole eight
    const auto* const at = reinterpret_cast<const unsigned*>(e.bias.data) + (col / 2 + lane % 4);
#pragma unroll
    for (int g = 0; g < kSubtileValues / 4; ++g) bias.pairs[g] = col + 8 * g < e.cols ? at[4 * g] : 0;
  }
}

template <class T>
__device__ __forceinline__ void add_bias(const WarpgroupEpilogue& e, const SubtileBias& bias, float (&z)[kSubtileValues]) {
  if (e.bias_along_rows) {
    const float above = unpack<T>(bias.pairs[0]).x, below = unpack<T>(bias.pairs[1]).x;
#pragma unroll
    for (int i = 0; i < kSubtileValues; ++i) z[i] += i % 4 < 2 ? above : below;
  } else {
#pragma unroll
    for (int g = 0; g < kSubtileValues / 4; ++g) {
      const float2 both = unpack<T>(bias.pairs[g]);
      z[4 * g] += both.x;
      z[4 * g + 1] += both.y;
      z[4 * g + 2] += both.x;
      z[4 * g + 3] += both.y;
    }
  }
}

// fn.template operator()<activation>(), the branch outside of fn's loops.
template <class Fn>
__device__ __forceinline__ void with_activation(Activation activation, Fn&& fn) {
  switch (activation) {
    case Activation::none:
      return;
    case Activation::relu:
      return fn.template operator()<Activation::relu>();
    case Activation::gelu_tanh:
      return fn.template operator()<Activation::gelu_tanh>();
    case Activation::gelu_erf:
      return fn.template operator()<Activation::gelu_erf>();
  }
}

// What happens to a share in 16 bits, as a type: branches between its instructions would cost as much as they do.
enum class SideInput { none, derivative, added };
template <class Element, Activation kWhich, SideInput kFrom>
struct SubtileForm {
  using T = Element;
  static constexpr Activation kActivation = kWhich;  // or whose derivative
  static constexpr SideInput kSideInput = kFrom;
};

template <class Body>
__device__ __forceinline__ void with_subtile_form(const WarpgroupEpilogue& e, Body&& body) {
  const auto with_type = [&]<class T>(T) {
    if (e.has_side && e.derivative_of.data == nullptr) return body(SubtileForm<T, Activation::none, SideInput::added>{});
    if (e.has_side) {
      return with_activation(e.derivative, [&]<Activation kWhich>() { body(SubtileForm<T, kWhich, SideInput::derivative>{}); });
    }
    if (e.activation == Activation::none) return body(SubtileForm<T, Activation::none, SideInput::none>{});
    with_activation(e.activation, [&]<Activation kWhich>() { body(SubtileForm<T, kWhich, SideInput::none>{}); });
  };
  if (e.d.dtype == DType::bf16) {
    with_type(bf16{});
  } else {
    with_type(f16{});
  }
}

// Finishes a share of 16 bits, whose bias is in z, through the strips. A side input comes in strip `side`, from where the result goes out.
template <class Form, int kStagingBuffers>
__device__ __forceinline__ void finish_subtile(Form, const WarpgroupEpilogue& e, WarpStaging<kStagingBuffers>& staging, int side,
                                               const SubtileAt& at, float (&z)[kSubtileValues]) {
  using T = typename Form::T;
  if constexpr (Form::kSideInput == SideInput::none) {
    if (e.saved_input.data != nullptr) staging.template put<T>(staging.next(), e.saved_input_map, at, z);
#pragma unroll
    for (int i = 0; i < kSubtileValues; ++i) z[i] = activate_to<T>(Form::kActivation, z[i]);
    staging.template put<T>(staging.next(), e.d_map, at, z);
  } else {
    std::byte* const buffer = staging.take(side);
    [[maybe_unused]] const float beta = Form::kSideInput == SideInput::added ? e.beta.load<float>() : 1.0f;
#pragma unroll
    for (int g = 0; g < 8; g += 2) {
      std::uint32_t pairs[4];
      ldmatrix(pairs, shared_address(staging.groups(buffer, g)));
#pragma unroll
      for (int i = 0; i < 8; i += 2) {
        const float2 x = unpack<T>(pairs[i / 2]);
        float &low = z[4 * g + i], &high = z[4 * g + i + 1];
        if constexpr (Form::kSideInput == SideInput::derivative) {
          low *= activation_derivative_to<T>(Form::kActivation, x.x);
          high *= activation_derivative_to<T>(Form::kActivation, x.y);
        } else {
          low += beta * x.x;
          high += beta * x.y;
        }
      }
    }
    __syncwarp();
    staging.template put<T>(buffer, e.d_map, at, z);
  }
}

// Where column `col` of row `row` of a strip of sums in fp32 lies: [16, 64], eights of a row in an order of its own.
__device__ __forceinline__ int staged_at(int row, int col) { return row * kSubtileColumns + (col ^ row % 8 * 8); }

// Finishes 16 rows by 64 columns of D element by element, 32 neighbours of a row at a time, from the sums in shared memory.
__device__ __forceinline__ void finish_lines(const WarpgroupEpilogue& e, const float* accumulators, const SubtileAt& at) {
  constexpr int kAtOnce = 4;
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll 1
  for (int first = 0; first < kSubtileValues; first += kAtOnce) {
    float x[kAtOnce];
    bool inside[kAtOnce];
    std::int64_t row[kAtOnce];
    int col[kAtOnce];
    const auto each = [&](auto&& fn) {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (inside[i]) fn(x[i], row[i], col[i]);
      }
    };
    const auto from = [&](const LikeD& m, auto&& combine) {
      if (m.data != nullptr) each([&](float& y, std::int64_t r, int c) { combine(y, load_element(m.data, m.dtype, r * m.ld + c)); });
    };
    const auto to = [&](const LikeD& m) {
      if (m.data != nullptr) each([&](float& y, std::int64_t r, int c) { store_element(m.data, m.dtype, r * m.ld + c, y); });
    };
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int r = (first + i) / 2, c = lane + (first + i) % 2 * 32;
      row[i] = at.row + r;
      col[i] = at.col + c;
      inside[i] = row[i] < e.rows && col[i] < e.cols;
      x[i] = accumulators[staged_at(r, c)];
    }
    if (e.bias.data != nullptr) {
      each([&](float& y, std::int64_t r, int c) { y += load_element(e.bias.data, e.bias.dtype, e.bias_along_rows ? r : c); });
    }
    to(e.saved_input);
    with_activation(e.activation,
                    [&]<Activation kActivation>() { each([](float& y, std::int64_t, int) { y = activate(kActivation, y); }); });
    with_activation(e.derivative, [&]<Activation kActivation>() {
      from(e.derivative_of, [](float& y, float input) { y *= activation_derivative(kActivation, input); });
    });
    from(e.residual, [beta = e.beta.load<float>()](float& y, float more) { y += beta * more; });
    if (e.accumulate) from(e.d, [](float& y, float more) { y += more; });
    to(e.d);
  }
}

// The same of a warp's share, by way of 4 KB of the warp's own.
__device__ __forceinline__ void finish_elements(const WarpgroupEpilogue& e, std::byte* scratch, const SubtileAt& at,
                                                const float (&z)[kSubtileValues]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  auto* const accumulators = reinterpret_cast<float*>(scratch);
  __syncwarp();
#pragma unroll
  for (int i = 0; i < kSubtileValues; i += 2) {
    *reinterpret_cast<float2*>(accumulators + staged_at(lane / 4 + i % 4 * 4, i / 4 * 8 + lane % 4 * 2)) = {z[i], z[i + 1]};
  }
  __syncwarp();
  finish_lines(e, accumulators, at);
  fence_proxy_async_shared();  // a side input may come in here next
  __syncwarp();
}

// fn(share, where it lies, its sums) for each share inside D of a warpgroup's kMmaTiles times 64 rows from `row` on by 2 kColumns columns
// from `col` on. fn stands kCopies times, once or for every share: then its sums are picked out of the registers, since a register has
// no index.
template <int kCopies, int kMmaTiles, int kColumns, class Fn>
__device__ __forceinline__ void for_each_subtile(const WarpgroupEpilogue& e, int row, int col,
                                                 const float (&accumulators)[kMmaTiles][kColumns], Fn&& fn) {
  constexpr int kSubtiles = kColumns / kSubtileValues;  // of a block
  const int warp_row = row + static_cast<int>(threadIdx.x / 32 % 4) * kSubtileRows;
#pragma unroll kCopies
  for (int subtile = 0; subtile < kMmaTiles * kSubtiles; ++subtile) {
    const SubtileAt at = {.row = warp_row + subtile / kSubtiles * kBox, .col = col + subtile % kSubtiles * kSubtileColumns};
    if (at.row >= e.rows || at.col >= e.cols) continue;
    float z[kSubtileValues];
    with_register_index<kMmaTiles * kSubtiles>(subtile, [&](int candidate) {
#pragma unroll
      for (int i = 0; i < kSubtileValues; ++i) z[i] = accumulators[candidate / kSubtiles][candidate % kSubtiles * kSubtileValues + i];
    });
    fn(subtile, at, z);
  }
}

// A warpgroup's tile of D, kMmaTiles times 64 rows by kColumns columns: what it needs from memory is asked for before its sums are made.
template <int kMmaTiles, int kColumns, int kStagingBuffers>
struct TileEpilogue {
  static constexpr int kSubtiles = kColumns / kSubtileColumns, kAll = kMmaTiles * kSubtiles;

  const WarpgroupEpilogue& e;
  WarpStaging<kStagingBuffers>& staging;
  int row = 0, col = 0;
  const bool through_staging;
  SubtileBias bias;

  __device__ __forceinline__ TileEpilogue(const WarpgroupEpilogue& epilogue, WarpStaging<kStagingBuffers>& warp_staging, int first_row,
                                          int first_col)
      : e(epilogue),
        staging(warp_staging),
        row(first_row),
        col(first_col),
        through_staging(goes_through_staging(epilogue, first_col, kColumns)) {
    if (through_staging && e.bias.data != nullptr) load_bias_async(e, row_of(0), col, bias);
    if (through_staging && e.has_side) {
      for (int subtile = 0; subtile < min(kStagingBuffers, kAll); ++subtile) load_side_async(subtile);
    }
  }

  // What stores_accumulators says, in fp32 or T.
  template <class T>
  __device__ __forceinline__ void store(const float (&accumulators)[kMmaTiles][kColumns / 2]) {
    if (!through_staging) {
      finish_by_elements(accumulators);
    } else {
      store_whole<T>(accumulators);
    }
  }
  // The same of a D whose rows end on 16 bytes; one strip is enough for it.
  template <class T>
  __device__ __forceinline__ void store_whole(const float (&accumulators)[kMmaTiles][kColumns / 2]) {
    if (e.d.dtype == DType::f32) {
      for_each_subtile<kAll>(e, row, col, accumulators,
                             [&](int, const SubtileAt& at, float(&z)[kSubtileValues]) { staging.put(e.d_map, at, z, e.accumulate); });
    } else {
      for_each_subtile<kAll>(e, row, col, accumulators, [&](int, const SubtileAt& at, float(&z)[kSubtileValues]) {
        staging.template put<T>(staging.next(), e.d_map, at, z);
      });
    }
  }

  __device__ __forceinline__ void finish(const float (&accumulators)[kMmaTiles][kColumns / 2]) {
    if (!through_staging) {
      finish_by_elements(accumulators);
    } else if (e.d.dtype == DType::f32) {
      for_each_subtile<kAll>(e, row, col, accumulators,
                             [&](int, const SubtileAt& at, float(&z)[kSubtileValues]) { staging.put(e.d_map, at, z, e.accumulate); });
    } else {
      with_subtile_form(e, [&](auto form) {
        constexpr int kCopies = form.kActivation == Activation::none && form.kSideInput == SideInput::none ? kAll : 1;
        for_each_subtile<kCopies>(e, row, col, accumulators, [&](int subtile, const SubtileAt& at, float(&z)[kSubtileValues]) {
          if (e.bias.data != nullptr) {
            add_bias<typename decltype(form)::T>(e, bias, z);
            if constexpr (kMmaTiles == 1) {
              if (subtile + 1 < kAll) load_bias_async(e, row_of(subtile + 1), col_of(subtile + 1), bias);
            } else if (const int next = subtile_after(subtile); next < kAll) {
              load_bias_async(e, row_of(next), col_of(next), bias);
            }
          }
          finish_subtile(form, e, staging, subtile % kStagingBuffers, at, z);
          if (e.has_side && subtile + kStagingBuffers < kAll) load_side_async(subtile + kStagingBuffers);
        });
      });
    }
  }

 private:
  __device__ __forceinline__ void finish_by_elements(const float (&accumulators)[kMmaTiles][kColumns / 2]) {
    static_assert(kStagingBuffers > 1, "elements take 4 KB");
    staging.settle();
    for_each_subtile<1>(e, row, col, accumulators,
                        [&](int, const SubtileAt& at, float(&z)[kSubtileValues]) { finish_elements(e, staging.first, at, z); });
  }
  __device__ __forceinline__ int row_of(int subtile) const {
    return row + static_cast<int>(threadIdx.x / 32 % 4) * kSubtileRows + subtile / kSubtiles * kBox;
  }
  __device__ __forceinline__ int col_of(int subtile) const { return col + subtile % kSubtiles * kSubtileColumns; }
  // The next one inside D: where its columns end, the next block's first.
  __device__ __forceinline__ int subtile_after(int subtile) const {
    return col_of(subtile + 1) < e.cols ? subtile + 1 : (subtile / kSubtiles + 1) * kSubtiles;
  }
  __device__ __forceinline__ void load_side_async(int subtile) {
    if (row_of(subtile) < e.rows && col_of(subtile) < e.cols)
      staging.load_async(e.side_map, subtile % kStagingBuffers, row_of(subtile), col_of(subtile));
  }
};

__device__ __forceinline__ void store_bias_gradient(const WarpgroupEpilogue& e, int row, float sum) {
  if (row >= e.rows) return;
  const float before = e.accumulate_bias_gradient ? load_element(e.bias_gradient.data, e.bias_gradient.dtype, row) : 0.0f;
  store_element(e.bias_gradient.data, e.bias_gradient.dtype, row, before + sum);
}

// fn(row, sum) once for each of a warpgroup's 64 rows, from its sums of the row operand over K.
template <AccumulatorRows kRows = AccumulatorRows::eight_apart, class Fn>
__device__ __forceinline__ void for_each_row_sum(const float (&accumulators)[4], Fn&& fn) {
  const int first = static_cast<int>(threadIdx.x / 32 % 4) * kSubtileRows, lane = static_cast<int>(threadIdx.x % 32);
  if (threadIdx.x % 4 != 0) return;
  fn(first + accumulator_row<kRows>(lane, 0), accumulators[0]);
  fn(first + accumulator_row<kRows>(lane, 1), accumulators[2]);
}

__device__ __forceinline__ void finish_bias_gradient(const WarpgroupEpilogue& e, int row, const float (&accumulators)[4]) {
  for_each_row_sum(accumulators, [&](int own, float sum) { store_bias_gradient(e, row + own, sum); });
}

}  // namespace tilewave

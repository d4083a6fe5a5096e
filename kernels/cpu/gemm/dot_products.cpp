// dot_products on a CPU, in f32 and f64: vectors run along K, over kRows rows of A and up to kTokens rows of B at a time;
// the lanes of each sum are added up at the end. An output's order of summation depends on K alone.
#include "kernels/gemm/cpu/dot_products.h"

#include <algorithm>

#include "kernels/core/queue.h"
#include "kernels/cpu/gemm/launch.h"
#include "kernels/gemm/tiling.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/dot_products.cpp"  // NOLINT
#include <hwy/foreach_target.h>                                 // NOLINT: includes this file once a target
#include <hwy/highway.h>

#include "kernels/cpu/gemm/frame-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kRows = 4, kTokens = 4;

// Rows first .. first + rows of an operand; those that are missing are the last one again.
template <class T>
struct Rows {
  Rows(const ConstMatrixView& view, std::int64_t first, std::int64_t rows) {
    for (std::int64_t r = 0; r < 4; ++r) at[r] = view.row<T>(first + std::min(r, rows - 1));
  }
  const T* at[4];
};

// z[token * stride + row] = dot product of a.at[row] and b.at[token], of kRows rows and kCount tokens.
template <std::int64_t kCount, class T>
void dot(const Rows<T>& a, const Rows<T>& b, std::int64_t k, T* HWY_RESTRICT z, std::int64_t stride) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t lanes = hn::MaxLanes(d);
  hn::Vec<decltype(d)> sum[kCount][kRows];
  HWY_UNROLL(4)
  for (std::int64_t c = 0; c < kCount; ++c) {
    HWY_UNROLL(4)
    for (std::int64_t r = 0; r < kRows; ++r) sum[c][r] = hn::Zero(d);
  }
  const auto multiply_add = [&](const T* const* along_a, const T* const* along_b, std::int64_t at) HWY_ATTR {
    hn::Vec<decltype(d)> weights[kRows];
    HWY_UNROLL(4)
    for (std::int64_t r = 0; r < kRows; ++r) weights[r] = hn::LoadU(d, along_a[r] + at);
    HWY_UNROLL(4)
    for (std::int64_t c = 0; c < kCount; ++c) {
      const auto token = hn::LoadU(d, along_b[c] + at);
      HWY_UNROLL(4)
      for (std::int64_t r = 0; r < kRows; ++r) sum[c][r] = hn::MulAdd(weights[r], token, sum[c][r]);
    }
  };
  const std::int64_t whole = k / lanes * lanes;
  for (std::int64_t at = 0; at < whole; at += lanes) multiply_add(a.at, b.at, at);
  if (whole < k) {  // The rest of K, padded with zeros.
    T rest[kRows + kCount][lanes] = {};
    const T *rest_a[kRows], *rest_b[kCount];
    for (std::int64_t r = 0; r < kRows; ++r) rest_a[r] = std::copy(a.at[r] + whole, a.at[r] + k, rest[r]) - (k - whole);
    for (std::int64_t c = 0; c < kCount; ++c) rest_b[c] = std::copy(b.at[c] + whole, b.at[c] + k, rest[kRows + c]) - (k - whole);
    multiply_add(rest_a, rest_b, 0);
  }
  HWY_UNROLL(4)
  for (std::int64_t c = 0; c < kCount; ++c) {
    HWY_UNROLL(4)
    for (std::int64_t r = 0; r < kRows; ++r) z[c * stride + r] = hn::GetLane(hn::SumOfLanes(d, sum[c][r]));
  }
}

template <class T>
void run_tile(const Frame<T>& frame, Tile tile, std::int64_t first_m, std::int64_t first_n) {
  constexpr std::int64_t tile_rows = kDotProductsTiles[0].m;
  T z[kTokens * tile_rows];
  const std::int64_t last_m = std::min(first_m + tile.m, frame.i), last_n = std::min(first_n + tile.n, frame.j);
  for (std::int64_t n = first_n; n < last_n; n += kTokens) {
    const std::int64_t tokens = std::min(kTokens, last_n - n);
    const Rows<T> b(frame.args.b, n, tokens);
    for (std::int64_t m = first_m; m < last_m; m += kRows) {
      const Rows<T> a(frame.args.a, m, std::min(kRows, last_m - m));
      T* sums = &z[m - first_m];
      switch (tokens) {
        case 1:
          dot<1>(a, b, frame.k, sums, tile_rows);
          break;
        case 2:
          dot<2>(a, b, frame.k, sums, tile_rows);
          break;
        case 3:
          dot<3>(a, b, frame.k, sums, tile_rows);
          break;
        default:
          dot<4>(a, b, frame.k, sums, tile_rows);
          break;
      }
    }
    finish(frame.args, {.i = first_m, .count = last_m - first_m, .j = n, .columns = tokens}, z, tile_rows);
  }
}

template <class T>
void launch(CpuQueue& queue, const GemmCall& call) {
  const Frame<T> frame(call.args);
  const TileLoop loop{.grid = {.i = frame.j, .j = frame.i, .tile_i = call.plan.tile.n, .tile_j = call.plan.tile.m},
                      .multiply_adds = frame.i * frame.j * frame.k,
                      .threads = call.plan.tiling.slots};
  for_each_tile(queue, loop, [&](std::int64_t tile, int) {
    run_tile(frame, call.plan.tile, tile / call.plan.tiling.tiles_n * call.plan.tile.m, tile % call.plan.tiling.tiles_n * call.plan.tile.n);
  });
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

void launch_dot_products(CpuQueue& queue, const GemmCall& call) {
  check_one_type(call.args, "dot_products");
  if (call.args.d.dtype == DType::f32) {
    HWY_DYNAMIC_DISPATCH(launch_f32)(queue, call);
  } else {
    HWY_DYNAMIC_DISPATCH(launch_f64)(queue, call);
  }
}

}  // namespace tilewave
#endif

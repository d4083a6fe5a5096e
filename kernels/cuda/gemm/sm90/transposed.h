// What the rows share whose tiles are turned: wgmma's rows come from A and run along M, its columns from B along N, in steps of 32. A
// thread's sums then are neighbours along N, and D's along M: stmatrix transposes them on their way through shared memory.
#pragma once

#include "kernels/cuda/gemm/sm90/warpgroup_gemm.h"

namespace tilewave {

// One stage: 64 of K of a tile's operands.
template <int kM, int kN>
struct SwapAbStage {
  static constexpr int kRowBoxes = kM / kBox, kColBoxes = kN / kHalfBox, kColBoxCols = kHalfBox;
  static constexpr unsigned kBytes = kRowBoxes * kBoxBytes + kColBoxes * kHalfBoxBytes;
  alignas(1024) std::byte rows[kRowBoxes][kBoxBytes];      // [tile m, 64]
  alignas(1024) std::byte cols[kColBoxes][kHalfBoxBytes];  // [tile n, 64]
};

// The other way round than in the other rows.
inline WarpgroupGemm swap_ab_gemm(const GemmCall& call) {
  WarpgroupGemm gemm = warpgroup_gemm(call);
  std::swap(gemm.rows_fastest, gemm.cols_fastest);
  gemm.rows = make_tensor_map(call.args.a, kBox);
  gemm.cols =
      gemm.cols_fastest == Fastest::k ? make_tensor_map(call.args.b, kHalfBox) : make_tensor_map(call.args.b, kBox, BoxWidth::bytes_64);
  return gemm;
}

// A consumer's 64 kMmaTiles rows of M by kTile.n columns of N, from `m` and `n` on, from sums to D. C is a kernel's configuration. What is
// plain has a bias at most, and TMA stores all of it.
template <class C, bool kPlain = false>
struct SwapAbEpilogue {
  static constexpr int kTileN = static_cast<int>(C::kTile.n), kColumns = kTileN / 2;
  static constexpr int kLineBytes = kTileN * 128;  // a block's: [tile n, 64], or of fp32 32
  using Accumulators = float[C::kMmaTiles][kColumns];

  const WarpgroupEpilogue& e;
  const int m, n, consumer;
  float bias[C::kMmaTiles][2] = {};  // of a thread's rows

  __device__ __forceinline__ SwapAbEpilogue(const WarpgroupEpilogue& epilogue, int first_m, int first_n, int which)
      : e(epilogue), m(first_m), n(first_n), consumer(which) {
    if (e.bias.data == nullptr) return;
#pragma unroll
    for (int i = 0; i < 2 * C::kMmaTiles; ++i) {
      const int at = row(i / 2, i % 2);
      if (at < e.cols) bias[i / 2][i % 2] = load_element(e.bias.data, e.bias.dtype, at);
    }
  }

  // By way of `lines`, where a side input is, and of `saved_lines`, where the activation's input is stored: a kTile.n x 64 box a block.
  template <class T>
  __device__ __forceinline__ void finish(T, std::byte* lines, std::byte* saved_lines, const Accumulators& accumulators) const {
    with_form<T, true>([&]<class Form>(Form) {
#pragma unroll
      for (int mma_tile = 0; mma_tile < C::kMmaTiles; ++mma_tile)
        finish_columns<Form, kTileN>(lines + mma_tile * kLineBytes, saved_lines + mma_tile * kLineBytes, mma_tile, 0, accumulators);
    });
    fence_proxy_async_shared();
    sync();
    send<C::kMmaTiles, kTileN>(e.d_map, lines, m, n);
    if (saves()) send<C::kMmaTiles, kTileN>(e.saved_input_map, saved_lines, m, n);
    tma_store_commit();
    tma_store_wait_read<0>();
  }

  // Without a side input, kColumnsAtOnce of N at a time by way of buffers of so many lines of 128 bytes: by one after the other, or, where
  // the activation's input is stored, by the first two. What left them is waited for where it is in the way.
  template <int kColumnsAtOnce, class T, int kBuffers>
  __device__ __forceinline__ void finish_by_subtiles(T, std::byte (&buffers)[kBuffers][kColumnsAtOnce * 128],
                                                     const Accumulators& accumulators) const {
    constexpr int kSubtiles = kTileN / kColumnsAtOnce;
    static_assert(kTileN % kColumnsAtOnce == 0 && kColumnsAtOnce % kSubtileRows == 0 && C::kMmaTiles * kSubtiles % kBuffers == 0 &&
                  kBuffers > 1);
    with_form<T, false>([&]<class Form>(Form) {
#pragma unroll
      for (int subtile = 0; subtile < C::kMmaTiles * kSubtiles; ++subtile) {
        const int mma_tile = subtile / kSubtiles, column = subtile % kSubtiles * kColumnsAtOnce;
        std::byte *const lines = buffers[saves() ? 0 : subtile % kBuffers], *const saved_lines = buffers[1];
        if (saves()) {
          tma_store_wait_read<0>();
        } else {
          tma_store_wait_read<kBuffers - 1>();
        }
        sync();
        finish_columns<Form, kColumnsAtOnce>(lines, saved_lines, mma_tile, column, accumulators);
        fence_proxy_async_shared();
        sync();
        send<1, kColumnsAtOnce>(e.d_map, lines, m + mma_tile * kBox, n + column);
        if (saves()) send<1, kColumnsAtOnce>(e.saved_input_map, saved_lines, m + mma_tile * kBox, n + column);
        tma_store_commit();
      }
    });
  }

  // What the engine leaves of D's rows, fewer than eight elements of each: by the threads that have their sums, with a bias or without.
  __device__ __forceinline__ void store_last_columns(const Accumulators& accumulators) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int i = 0; i < 2 * C::kMmaTiles; ++i) {
      const int mma_tile = i / 2, h = i % 2, at = row(mma_tile, h);
      if (at < e.d.mapped_cols || at >= e.cols) continue;
#pragma unroll
      for (int j = 0; j < kColumns / 2; ++j) {
        const int column = n + j / 2 * 8 + lane % 4 * 2 + j % 2;
        if (column < e.rows)
          store_element(e.d.data, e.d.dtype, column * e.d.ld + at, accumulators[mma_tile][j / 2 * 4 + 2 * h + j % 2] + bias[mma_tile][h]);
      }
    }
  }

  // Sums alone in fp32, of each block's 64 of M the first 32 by way of `lines` and the others by way of `more_lines`.
  __device__ __forceinline__ void finish_fp32(std::byte* lines, std::byte* more_lines, const Accumulators& accumulators) const {
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32 % 4);
    std::byte* const own = warp < 2 ? lines : more_lines;
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // of a thread's four sums in eight columns: along N, along M
      const int line = lane % 4 * 2 + i % 2, chunk = (warp % 2 * 4 + i / 2 * 2 + lane / 16) ^ line;
      std::byte* const at = own + line * 128 + chunk * 16 + lane / 4 % 4 * 4;
#pragma unroll
      for (int mma_tile = 0; mma_tile < C::kMmaTiles; ++mma_tile) {
#pragma unroll
        for (int g = 0; g < kColumns / 4; ++g)
          *reinterpret_cast<float*>(at + mma_tile * kLineBytes + g * 8 * 128) = accumulators[mma_tile][4 * g + i];
      }
    }
    fence_proxy_async_shared();
    sync();
    send<C::kMmaTiles, kTileN, true>(e.d_map, lines, m, n);
    send<C::kMmaTiles, kTileN, true>(e.d_map, more_lines, m + kBox / 2, n);
    tma_store_commit();
    tma_store_wait_read<0>();
  }

  // Element by element, 64 columns of N at a time, by way of 16 KB of the consumer's own.
  __device__ __forceinline__ void finish_elements(std::byte* scratch, const Accumulators& accumulators) const {
    constexpr int kGroups = ceil_div(kTileN, kBox);
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32 % 4);
    auto* const staging = reinterpret_cast<float*>(scratch);  // [4][16 of N, 64 of M]
#pragma unroll 1
    for (int subtile = 0; subtile < C::kMmaTiles * kGroups; ++subtile) {
      sync();
      with_register_index<C::kMmaTiles * kGroups>(subtile, [&](int candidate) {
        const int first = candidate % kGroups * kSubtileValues;
#pragma unroll
        for (int i = 0; i < kSubtileValues && first + i < kColumns; ++i) {
          const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
          staging[column / kSubtileRows * kSubtileRows * kSubtileColumns +
                  staged_at(column % kSubtileRows, warp * kSubtileRows + lane / 4 + i / 2 % 2 * 8)] =
              accumulators[candidate / kGroups][first + i];
        }
      });
      sync();
      const int column = subtile % kGroups * kBox + warp * kSubtileRows;
      if (column < kTileN) {
        finish_lines(e, staging + warp * kSubtileRows * kSubtileColumns, {.row = n + column, .col = m + subtile / kGroups * kBox});
      }
    }
  }

 protected:
  // Where this lane points stmatrix and ldmatrix for columns 8 g to 8 g + 15 of a block of what has D's shape.
  __device__ __forceinline__ static std::byte* groups(std::byte* lines, int g) {
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32 % 4);
    return lines + (8 * (g + lane / 16) + lane % 8) * 128 + ((2 * warp + lane / 8 % 2) ^ lane % 8) * 16;
  }
  __device__ __forceinline__ int row(int mma_tile, int h) const {
    return m + mma_tile * kBox + static_cast<int>(threadIdx.x / 32 % 4) * kSubtileRows + static_cast<int>(threadIdx.x % 32 / 4) + 8 * h;
  }
  __device__ __forceinline__ void sync() const { sync_warpgroup(consumer); }
  __device__ __forceinline__ bool saves() const { return !kPlain && e.saved_input.data != nullptr; }
  template <class T, class Body>
  __device__ __forceinline__ void with_side(Body&& body) const {
    if (e.derivative_of.data == nullptr) return body(SubtileForm<T, Activation::none, SideInput::added>{});
    with_activation(e.derivative, [&]<Activation kWhich>() { body(SubtileForm<T, kWhich, SideInput::derivative>{}); });
  }
  template <class T, bool kSides, class Body>
  __device__ __forceinline__ void with_form(Body&& body) const {
    if constexpr (kPlain) {
      body(SubtileForm<T, Activation::none, SideInput::none>{});
    } else {
      if constexpr (kSides) {
        if (e.has_side) return with_side<T>(body);
      }
      if (e.activation == Activation::none) return body(SubtileForm<T, Activation::none, SideInput::none>{});
      with_activation(e.activation, [&]<Activation kWhich>() { body(SubtileForm<T, kWhich, SideInput::none>{}); });
    }
  }
  template <class T>
  __device__ __forceinline__ static void pack_all(unsigned (&words)[4], const float (&z)[8]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = pack<T>(z[2 * i], z[2 * i + 1]);
  }
  __device__ __forceinline__ static void put(std::byte* to, const unsigned (&words)[4]) {
    store_matrices_transposed(to, words[0], words[1], words[2], words[3]);
  }
  template <class T, Activation kWhich>
  __device__ __forceinline__ static void activate_all(float (&z)[8]) {
    if constexpr (kWhich == Activation::gelu_tanh && std::is_same_v<T, bf16>) {
      gelu_tanh_to_8_bits(z);
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) z[i] = activate_to<T>(kWhich, z[i]);
    }
  }
  // z by a side input, packed as ldmatrix hands it out.
  template <class Form>
  __device__ __forceinline__ void combine(float (&z)[8], const std::uint32_t (&words)[4]) const {
    using T = typename Form::T;
    float2 x[4];
    if constexpr (Form::kActivation == Activation::gelu_tanh && std::is_same_v<T, bf16>) {
      gelu_tanh_derivatives_to_8_bits(words, x);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        x[i] = unpack<T>(words[i]);
        if constexpr (Form::kSideInput == SideInput::derivative) {
          x[i].x = activation_derivative_to<T>(Form::kActivation, x[i].x);
          x[i].y = activation_derivative_to<T>(Form::kActivation, x[i].y);
        }
      }
    }
    [[maybe_unused]] const float beta = Form::kSideInput == SideInput::added ? e.beta.template load<float>() : 1.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      z[2 * i] = Form::kSideInput == SideInput::added ? z[2 * i] + beta * x[i].x : z[2 * i] * x[i].x;
      z[2 * i + 1] = Form::kSideInput == SideInput::added ? z[2 * i + 1] + beta * x[i].y : z[2 * i + 1] * x[i].y;
    }
  }
  template <class Form>
  __device__ __forceinline__ void finish_groups(std::byte* here, std::byte* saved, float (&z)[8]) const {
    using T = typename Form::T;
    unsigned words[4];
    if constexpr (Form::kSideInput == SideInput::none) {
      if (saves()) {
        pack_all<T>(words, z);
        put(saved, words);
      }
      activate_all<T, Form::kActivation>(z);
    } else {
      ldmatrix_transposed(words, shared_address(here));
      __syncwarp();
      combine<Form>(z, words);
    }
    pack_all<T>(words, z);
    put(here, words);
  }
  // A block's kLines columns of N from `column` on.
  template <class Form, int kLines>
  __device__ __forceinline__ void finish_columns(std::byte* lines, std::byte* saved_lines, int mma_tile, int column,
                                                 const Accumulators& accumulators) const {
#pragma unroll
    for (int g = 0; g < kLines / 8; g += 2) {
      float z[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        z[i] = accumulators[mma_tile][column / 2 + 4 * g + i];
        if constexpr (kPlain) asm volatile("" : "+f"(z[i]));  // or straight code packs all sums at once, beside those not packed yet
        z[i] += bias[mma_tile][i / 2 % 2];
      }
      finish_groups<Form>(groups(lines, g), groups(saved_lines, g), z);
    }
  }
  // 16 of N at a time, every fourth by the same warp: kLines lines of each of so many blocks, to M from `x` on and N from `y` on. Only to
  // what is in fp32 may they be added.
  template <int kMmaTiles, int kLines, bool kFp32 = false>
  __device__ __forceinline__ void send(const CUtensorMap& map, const std::byte* lines, int x, int y) const {
    constexpr int kStagingBuffers = kLines / kSubtileRows, kWarps = kWarpgroup / 32;
    const bool adds = kFp32 && e.accumulate;
    const int first = warp_rank() % kWarps;
    if (!elect_lane()) return;
#pragma unroll
    for (int buffer = first; buffer < kMmaTiles * kStagingBuffers; buffer += kWarps) {
      const int buffer_x = x + buffer / kStagingBuffers * kBox, buffer_y = y + buffer % kStagingBuffers * kSubtileRows;
      if (adds) {
        tma_reduce_add(map, lines + buffer * kStagingBytes, buffer_x, buffer_y);
      } else {
        tma_store(map, lines + buffer * kStagingBytes, buffer_x, buffer_y);
      }
    }
  }
};

}  // namespace tilewave

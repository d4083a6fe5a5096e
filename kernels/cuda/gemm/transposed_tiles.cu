// Adds to warp_specialized tiles of which one wave is enough: wgmma's rows run along M, its columns along N in steps of 32, so that a
// tile's N is what fills the wave. A thread's sums then are neighbours along N, and D's along M: stmatrix transposes them on their way
// through shared memory, where they take the ring's next stages, as do side inputs, which the producer asks for like a block of K. The
// consumers take the last blocks of K, which the ring holds by then, one after the other: the first stores under the other's products.
#include "kernels/cuda/gemm/warpgroup_gemm.h"
#include "kernels/gemm/rows/transposed_tiles.h"

namespace tilewave {
namespace {

constexpr int kColumnBoxRows = 32, kColumnBoxBytes = kColumnBoxRows * 128;

template <int kM, int kN>
struct Config {
  static constexpr Tile kTile = {kM, kN};
  static constexpr int kStages = transposed_stages(kTile), kConsumers = 2;
  static constexpr int kBlocks = kM / kConsumers / kBox;  // of 64 rows, a consumer's
  static constexpr int kInTurn = kStages - 1;             // of K's last blocks: what loads them waits for none of these
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
  static constexpr int kLineBytes = kN * 128;  // of what is D's shape, a block's: [tile n, 64]

  struct Stage {
    static constexpr unsigned kBytes = kM / kBox * kBoxBytes + kN / kColumnBoxRows * kColumnBoxBytes;
    alignas(1024) std::byte rows[kM / kBox][kBoxBytes];                  // [tile m, 64]
    alignas(1024) std::byte cols[kN / kColumnBoxRows][kColumnBoxBytes];  // [tile n, 64]
  };
  struct SharedStorage {
    Stage stages[kStages];
    alignas(1024) Mbarrier full[kStages];
    Mbarrier empty[kStages];
  };
  static_assert(sizeof(SharedStorage) == transposed_tiles_shared_bytes(kTile), "the plan knows what a block needs");
  static_assert(kConsumers == 2, "one waits for the other");
  static_assert(kStages >= 2 * kConsumers, "D and saved_input have stages of their own for each consumer");
  static_assert(kBlocks * kLineBytes <= static_cast<int>(sizeof(Stage)), "a consumer's part of D fits a stage");
};

// A consumer's 64 kBlocks rows of M by kN columns of N, from `m` and `n` on, from sums to D.
template <class C>
struct TransposedEpilogue {
  static constexpr int kColumns = static_cast<int>(C::kTile.n) / 2;
  using Sums = float[C::kBlocks][kColumns];

  const WarpgroupEpilogue& e;
  const int m, n, consumer;
  float bias[C::kBlocks][2] = {};  // of a thread's rows

  __device__ __forceinline__ TransposedEpilogue(const WarpgroupEpilogue& epilogue, int first_m, int first_n, int which)
      : e(epilogue), m(first_m), n(first_n), consumer(which) {
    if (e.bias.data == nullptr) return;
#pragma unroll
    for (int i = 0; i < 2 * C::kBlocks; ++i) {
      const int at = row(i / 2, i % 2);
      if (at < e.cols) bias[i / 2][i % 2] = load_element(e.bias.data, e.bias.dtype, at);
    }
  }

  // The next stages of the ring are `lines`, where a side input is, and, where the activation's input is stored, `saved_lines`.
  template <class T>
  __device__ __forceinline__ void finish(T, std::byte* lines, std::byte* saved_lines, const Sums& sums) const {
    with_form<T>([&]<class Form>(Form) {
#pragma unroll
      for (int block = 0; block < C::kBlocks; ++block) {
#pragma unroll
        for (int g = 0; g < kColumns / 4; g += 2) {
          float z[8];
#pragma unroll
          for (int i = 0; i < 8; ++i) z[i] = sums[block][4 * g + i] + bias[block][i / 2 % 2];
          finish_groups<Form>(groups(lines + block * C::kLineBytes, g), groups(saved_lines + block * C::kLineBytes, g), z);
        }
      }
    });
    fence_shared_for_engines();
    sync();
    send(e.d_map, lines);
    if (e.saved_input.data != nullptr) send(e.saved_input_map, saved_lines);
    commit_boxes();
    wait_boxes_read<0>();
  }

  // Element by element, 64 columns of N at a time, by way of 16 KB of the consumer's own.
  __device__ __forceinline__ void finish_elements(std::byte* scratch, const Sums& sums) const {
    constexpr int kGroups = static_cast<int>(ceil_div(C::kTile.n, std::int64_t{kBox}));
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32 % 4);
    auto* const strips = reinterpret_cast<float*>(scratch);  // [4][16 of N, 64 of M]
#pragma unroll 1
    for (int share = 0; share < C::kBlocks * kGroups; ++share) {
      sync();
#pragma unroll
      for (int candidate = 0; candidate < C::kBlocks * kGroups; ++candidate) {
        if (candidate != share) continue;
        asm volatile("");  // a branch: a register has no index
        const int first = candidate % kGroups * kShare;
#pragma unroll
        for (int i = 0; i < kShare && first + i < kColumns; ++i) {
          const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
          strips[column / kStripRows * kStripRows * kShareColumns +
                 sum_at(column % kStripRows, warp * kStripRows + lane / 4 + i / 2 % 2 * 8)] = sums[candidate / kGroups][first + i];
        }
      }
      sync();
      const int column = share % kGroups * kBox + warp * kStripRows;
      if (column < C::kTile.n) {
        finish_lines(e, strips + warp * kStripRows * kShareColumns, {.row = n + column, .col = m + share / kGroups * kBox});
      }
    }
  }

 private:
  // Where this lane points stmatrix and ldmatrix for columns 8 g to 8 g + 15 of a block of what has D's shape.
  __device__ __forceinline__ static std::byte* groups(std::byte* lines, int g) {
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32 % 4);
    return lines + (8 * (g + lane / 16) + lane % 8) * 128 + ((2 * warp + lane / 8 % 2) ^ lane % 8) * 16;
  }
  __device__ __forceinline__ int row(int block, int h) const {
    return m + block * kBox + static_cast<int>(threadIdx.x / 32 % 4) * kStripRows + static_cast<int>(threadIdx.x % 32 / 4) + 8 * h;
  }
  __device__ __forceinline__ void sync() const { sync_warpgroup(consumer); }
  template <class T, class Body>
  __device__ __forceinline__ void with_form(Body&& body) const {
    if (e.has_side && e.derivative_of.data == nullptr) return body(ShareForm<T, Activation::none, Side::added>{});
    if (e.has_side) {
      return with_activation(e.derivative, [&]<Activation kWhich>() { body(ShareForm<T, kWhich, Side::derivative>{}); });
    }
    if (e.activation == Activation::none) return body(ShareForm<T, Activation::none, Side::none>{});
    with_activation(e.activation, [&]<Activation kWhich>() { body(ShareForm<T, kWhich, Side::none>{}); });
  }
  template <class Form>
  __device__ __forceinline__ void finish_groups(std::byte* here, std::byte* saved, float (&z)[8]) const {
    using T = typename Form::T;
    const auto put = [&](std::byte* to) {
      store_matrices_transposed(to, pack<T>(z[0], z[1]), pack<T>(z[2], z[3]), pack<T>(z[4], z[5]), pack<T>(z[6], z[7]));
    };
    if constexpr (Form::kSide == Side::none) {
      if (e.saved_input.data != nullptr) put(saved);
#pragma unroll
      for (int i = 0; i < 8; ++i) z[i] = activate_to<T>(Form::kActivation, z[i]);
    } else {
      std::uint32_t pairs[4];
      ldmatrix_transposed(pairs, shared_address(here));
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 8; i += 2) {
        const float2 x = unpack<T>(pairs[i / 2]);
        if constexpr (Form::kSide == Side::derivative) {
          z[i] *= activation_derivative_to<T>(Form::kActivation, x.x);
          z[i + 1] *= activation_derivative_to<T>(Form::kActivation, x.y);
        } else {
          z[i] += x.x;
          z[i + 1] += x.y;
        }
      }
    }
    put(here);
  }
  // 16 of N at a time, each by a thread of its own.
  __device__ __forceinline__ void send(const CUtensorMap& map, const std::byte* lines) const {
    constexpr int kStrips = static_cast<int>(C::kTile.n) / kStripRows;
    const int strip = static_cast<int>(threadIdx.x % kWarpgroup);
    if (strip >= C::kBlocks * kStrips) return;
    store_box(map, lines + strip * kStripBytes, m + strip / kStrips * kBox, n + strip % kStrips * kStripRows);
  }
};

// The consumers' parts of a side input, each into a stage of its own.
template <class C>
__device__ __forceinline__ void load_side(typename C::SharedStorage& shared, const WarpgroupGemm& gemm, RingPosition<C::kStages> at, int m,
                                          int n) {
  for (int consumer = 0; consumer < C::kConsumers; ++consumer, at.advance()) {
    mbarrier_wait(shared.empty[at.stage], at.parity ^ 1);
    mbarrier_arrive_expecting(shared.full[at.stage], C::kBlocks * C::kLineBytes);
    auto* const lines = reinterpret_cast<std::byte*>(&shared.stages[at.stage]);
    for (int block = 0; block < C::kBlocks; ++block) {
      for (int line = 0; line < C::kTile.n; line += kStripRows) {
        load_box(lines + block * C::kLineBytes + line * 128, gemm.epilogue.side_map, shared.full[at.stage],
                 m + (consumer * C::kBlocks + block) * kBox, n + line);
      }
    }
  }
}

template <class C, class P>
__global__ void __launch_bounds__(C::kThreads, 1) transposed_tiles(const __grid_constant__ WarpgroupGemm gemm) {
  extern __shared__ __align__(1024) std::byte storage[];
  auto& shared = *reinterpret_cast<typename C::SharedStorage*>(storage);
  const TileAt tile = gemm.raster(static_cast<int>(blockIdx.x));
  const int m = tile.m * static_cast<int>(C::kTile.m), n = tile.n * static_cast<int>(C::kTile.n);
  const WarpgroupEpilogue& e = gemm.epilogue;
  const bool through_lines = e.through_strips && min(m + static_cast<int>(C::kTile.m), e.cols) <= e.d.mapped_cols;

  // Prologue.
  if (threadIdx.x == 0) {
    prefetch_map(gemm.rows);
    prefetch_map(gemm.cols);
    mbarrier_init(shared.full, 1);
    mbarrier_init(shared.empty, C::kConsumers);
    mbarrier_init_fence();
  }
  __syncthreads();
  wait_for_previous_kernel();

  RingPosition<C::kStages> at;
  if (threadIdx.x < kWarpgroup) {  // The producer.
    give_up_registers<C::kProducerRegisters>();
    if (threadIdx.x == 0) {
      for (int block = 0; block < gemm.blocks_k; ++block, at.advance()) {
        auto& stage = shared.stages[at.stage];
        Mbarrier& full = shared.full[at.stage];
        mbarrier_wait(shared.empty[at.stage], at.parity ^ 1);
        mbarrier_arrive_expecting(full, stage.kBytes);
        for (int box = 0; box < C::kTile.m / kBox; ++box) {
          load_operand_box(stage.rows[box], gemm.rows, P::kRows, full, block * kBox, m + box * kBox);
        }
        for (int box = 0; box < C::kTile.n / kColumnBoxRows; ++box) {
          load_box(stage.cols[box], gemm.cols, full, block * kBox, n + box * kColumnBoxRows);
        }
      }
      if (through_lines && e.has_side) load_side<C>(shared, gemm, at, m, n);
    }
  } else {  // A consumer: main loop, then epilogue.
    take_registers<C::kConsumerRegisters>();
    const int consumer = warpgroup_rank() - 1;
    const bool leads = threadIdx.x % kWarpgroup == 0;
    float sums[C::kBlocks][C::kTile.n / 2];  // [64 blocks, tile n]
    int previous = 0;
    const int waits_at = consumer == 1 ? max(gemm.blocks_k - C::kInTurn, 0) : -1;
    const int passes_at = consumer == 0 ? gemm.blocks_k - 1 : -1;
    for (int block = 0; block < gemm.blocks_k; ++block, at.advance()) {
      if (block == waits_at) wait_for_turn(0);
      mbarrier_wait(shared.full[at.stage], at.parity);
      multiply(P{}, shared.stages[at.stage], consumer * C::kBlocks, block > 0, sums);
      if (block == passes_at) pass_turn(0);
      wgmma_wait<1>();
      if (leads && block > 0) mbarrier_arrive(shared.empty[previous]);
      previous = at.stage;
    }
    const TransposedEpilogue<C> epilogue(e, m + consumer * C::kBlocks * kBox, n, consumer);
    wgmma_wait<0>();
    if (leads) mbarrier_arrive(shared.empty[previous]);

    const auto stage_after = [&](int steps) {  // once nobody reads it
      RingPosition<C::kStages> other = at;
      other.advance(std::int64_t{steps});
      if (e.has_side && through_lines) {
        mbarrier_wait(shared.full[other.stage], other.parity);
      } else {
        mbarrier_wait(shared.empty[other.stage], other.parity ^ 1);
      }
      return reinterpret_cast<std::byte*>(&shared.stages[other.stage]);
    };
    std::byte* const lines = stage_after(consumer);
    if (through_lines) {
      epilogue.finish(typename P::T{}, lines, e.saved_input.data != nullptr ? stage_after(C::kConsumers + consumer) : lines, sums);
    } else {
      epilogue.finish_elements(lines, sums);
    }
  }
}

// wgmma's rows come from A here and its columns from B: the other way round than in the other rows.
WarpgroupGemm transposed_gemm(const GemmArgs& args, const GemmPlan& plan) {
  WarpgroupGemm gemm = warpgroup_gemm(args, plan);
  gemm.rows = make_tensor_map(args.a, kBox);
  gemm.cols = make_tensor_map(args.b, kColumnBoxRows);
  std::swap(gemm.rows_fastest, gemm.cols_fastest);
  return gemm;
}

}  // namespace

void launch_transposed_tiles(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  const WarpgroupGemm gemm = transposed_gemm(args, plan);
  const auto launch = [&]<int kM, int kN>() {
    if (plan.tile != Tile{kM, kN}) return;
    using C = Config<kM, kN>;
    const auto of_major = [&]<class T, Fastest kRows>() {
      launch_clusters(queue, "transposed_tiles", transposed_tiles<C, Product<T, kRows, Fastest::k, false>>, gemm, plan.blocks, C::kThreads,
                      sizeof(typename C::SharedStorage));
    };
    const auto of_type = [&]<class T>(T) {
      if (gemm.rows_fastest == Fastest::k) {
        of_major.template operator()<T, Fastest::k>();
      } else {
        of_major.template operator()<T, Fastest::other>();
      }
    };
    if (gemm.operand_dtype == DType::bf16) {
      of_type(bf16{});
    } else {
      of_type(f16{});
    }
  };
  launch.template operator()<256, 160>();
  launch.template operator()<128, 160>();
}

}  // namespace tilewave

// What the Hopper rows say without a GPU: which problems they refuse and why, and that their plans fit an H200.
#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm/catalog.h"
#include "kernels/gemm/ladder/bulk_copy_wgmma.h"
#include "kernels/gemm/ladder/warp_specialized.h"
#include "kernels/gemm/sm90/one_wave_paired_k.h"
#include "kernels/gemm/sm90/one_wave_sliced_k.h"
#include "kernels/gemm/sm90/one_wave_swap_ab.h"
#include "kernels/gemm/sm90/persistent_data_parallel.h"
#include "kernels/gemm/sm90/persistent_deferred.h"
#include "kernels/gemm/sm90/persistent_ping_pong.h"
#include "kernels/gemm/sm90/persistent_ping_pong_swap_ab.h"
#include "kernels/gemm/sm90/split_k.h"
#include "kernels/gemm/sm90/split_k_cluster.h"
#include "kernels/gemm/sm90/stream_k.h"
#include "kernels/gemm/sm90/unaligned_deferred.h"
#include "tests/kernels/gemm/cases.h"
#include "tests/kernels/gemm/gpus.h"

namespace tilewave {
namespace {

constexpr std::int64_t kSharedBytes = 232448;
const GemmKernel* const kHopperRows[] = {&kBulkCopyWgmmaKernel,
                                         &kWarpSpecializedKernel,
                                         &kPersistentDataParallelKernel,
                                         &kPersistentDeferredKernel,
                                         &kPersistentPingPongKernel,
                                         &kOneWaveSwapAbKernel,
                                         &kPersistentPingPongSwapAbKernel,
                                         &kSplitKClusterKernel,
                                         &kSplitKKernel,
                                         &kOneWaveSlicedKKernel,
                                         &kStreamKKernel};

GemmProblem aligned(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m,
          .n = n,
          .k = k,
          .operand_dtype = DType::bf16,
          .output_dtype = DType::bf16,
          .epilogue = {},
          .a_pitch = k,
          .b_pitch = k,
          .d_pitch = m,
          .a_alignment = 128,
          .b_alignment = 128,
          .d_alignment = 128};
}

TEST(HopperRows, SayWhatTheyRefuse) {
  const GemmProblem problem = aligned(256, 256, 256);
  for (const GemmKernel* row : kHopperRows) {
    EXPECT_EQ(row->refuse(problem, h200()), "") << name_of(*row);
    const auto expect_refusal = [&](const GemmProblem& refused, const DeviceInfo& device, const std::string& text) {
      EXPECT_NE(row->refuse(refused, device).find(text), std::string::npos) << name_of(*row) << ": " << row->refuse(refused, device);
    };
    DeviceInfo small = h200();
    small.shared_bytes = 100 << 10;
    expect_refusal(problem, a100(), "compute capability 9.0; this device has 8.0");
    expect_refusal(problem, small, "bytes of shared memory, and the device gives 102400");
    GemmProblem other = problem;
    other.operand_dtype = DType::f32;
    expect_refusal(other, h200(), "not f32");
    other = problem;
    other.output_dtype = DType::f16;
    expect_refusal(other, h200(), "or f32, not f16");
    other = problem;
    other.d_major = Major::n;
    if (row == &kOneWaveSwapAbKernel || row == &kPersistentPingPongSwapAbKernel) {
      expect_refusal(other, h200(), "along rows of D");
    } else {
      EXPECT_EQ(row->refuse(other, h200()), "") << name_of(*row);
    }
    other.epilogue.bias_gradient = true;
    expect_refusal(other, h200(), "make D m-major");
    other = problem;
    other.b_pitch = 257;
    other.b_alignment = 2;
    expect_refusal(other, h200(), "base and pitch of B in multiples of 16 bytes; its pitch of 257");
    other = problem;
    other.n = std::int64_t{1} << 31;
    expect_refusal(other, h200(), "2147483648");
  }
}

TEST(HopperRows, PlansFitTheDevice) {
  const auto fits = [](const GemmKernel& row, auto&& shared_bytes) {
    for (const Tile tile : row.tiles) {
      EXPECT_LE(shared_bytes(tile), kSharedBytes) << name_of(row) << " " << tile.m << "x" << tile.n;
    }
  };
  fits(kBulkCopyWgmmaKernel, bulk_copy_wgmma_shared_bytes);
  fits(kWarpSpecializedKernel, warp_specialized_shared_bytes);
  fits(kPersistentDataParallelKernel, persistent_data_parallel_shared_bytes);
  fits(kPersistentDeferredKernel, persistent_deferred_shared_bytes);
  fits(kPersistentPingPongKernel, persistent_ping_pong_shared_bytes);
  fits(kOneWaveSwapAbKernel, one_wave_swap_ab_shared_bytes);
  fits(kPersistentPingPongSwapAbKernel, persistent_ping_pong_swap_ab_shared_bytes);
  fits(kSplitKClusterKernel, split_k_cluster_shared_bytes);
  fits(kSplitKKernel, split_k_shared_bytes);
  fits(kOneWaveSlicedKKernel, one_wave_sliced_k_shared_bytes);
  fits(kOneWavePairedKKernel, one_wave_paired_k_shared_bytes);
  fits(kStreamKKernel, stream_k_shared_bytes);
  for (const GemmKernel* row : kHopperRows) {
    for (const Tile tile : row->tiles) {
      for (const GemmProblem& problem : {aligned(1, 1, 1), aligned(4096, 5120, 1024), aligned(768, 768, 65536), aligned(50257, 129, 768)}) {
        const GemmPlan plan = row->plan(problem, tile, h200(), 0);
        EXPECT_GE(plan.blocks, 1);
        EXPECT_EQ(plan.blocks % plan.cluster, 0) << name_of(*row);
        EXPECT_GE(plan.stages, 3) << name_of(*row);
        EXPECT_GT(plan.predicted_s, 0.0);
        EXPECT_LE(plan.split, ceil_div(problem.k, kKTile)) << "every block has products to add";
      }
    }
  }
}

TEST(HopperRows, FewTilesShareTheirK) {
  const GemmPlan plan = choose(aligned(768, 768, 65536), h200());
  EXPECT_EQ(name_of(plan.composition), name_of(kSplitKKernel)) << plan.reason;
  EXPECT_GE(choose(aligned(768, 768, 65536), h200(), {.forced = "split_k/cluster"}).split, 2);
  EXPECT_EQ(choose(aligned(8192, 8192, 8192), h200()).split, 1);
}

TEST(HopperRows, SlicesOfKFillAWave) {
  EXPECT_EQ(kOneWaveSlicedKKernel.plan(aligned(1024, 1024, 4096), {128, 64}, h200(), 0).blocks, 128);
  EXPECT_EQ(name_of(choose(aligned(1024, 1024, 1024), h200()).composition), name_of(kOneWaveSlicedKKernel));
}

// A weight's gradient, both operands across K.
GemmProblem gradient(std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmProblem problem = aligned(m, n, k);
  problem.a_major = Major::m, problem.b_major = Major::n;
  problem.a_pitch = m, problem.b_pitch = n;
  return problem;
}

// What sums alone leave through is small, and a ring of four stages has a fifth.
TEST(HopperRows, SmallBuffersMakeRoomForAStage) {
  const auto stages = [](const GemmKernel& row, const GemmProblem& problem, Tile tile) {
    return row.plan(problem, tile, h200(), 0).stages;
  };
  for (const Tile tile : {Tile{192, 128}, Tile{128, 192}}) {
    GemmProblem problem = gradient(1024, 3072, 4096);
    EXPECT_EQ(stages(kPersistentDataParallelKernel, problem, tile), 5);
    problem.m = 1023;  // elements at the right edge take more
    EXPECT_EQ(stages(kPersistentDataParallelKernel, problem, tile), 4);
    problem.m = 1028;
    EXPECT_EQ(stages(kPersistentDataParallelKernel, problem, tile), 4);
    problem.output_dtype = DType::f32;
    EXPECT_EQ(stages(kPersistentDataParallelKernel, problem, tile), 5) << "four of fp32 are 16 bytes";
    problem.d_major = Major::n;
    EXPECT_EQ(stages(kPersistentDataParallelKernel, problem, tile), 5);
    problem.n = 3071;
    EXPECT_EQ(stages(kPersistentDataParallelKernel, problem, tile), 4) << "it is n that D's rows run along";
    EXPECT_EQ(stages(kPersistentDataParallelKernel, aligned(1024, 3072, 4096), tile), 4) << "it may have a side input";
  }
  GemmProblem forward = aligned(3072, 16384, 768);
  forward.epilogue.bias = true;
  EXPECT_EQ(stages(kPersistentPingPongSwapAbKernel, forward, {128, 192}), 5);
  forward.epilogue.activation = Activation::relu;
  EXPECT_EQ(stages(kPersistentPingPongSwapAbKernel, forward, {128, 192}), 5);
  forward.m = 3071;
  EXPECT_EQ(stages(kPersistentPingPongSwapAbKernel, forward, {128, 192}), 4) << "elements at the right edge take more";
}

TEST(HopperRows, TurnedTilesFillAWaveOfAWeightsGradient) {
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{768, 3072}, {3072, 768}}) {
    GemmProblem problem = gradient(m, n, 16384);
    for (const DType output : {DType::bf16, DType::f32}) {
      problem.output_dtype = output;
      problem.epilogue.accumulate = output == DType::f32;
      const GemmPlan plan = choose(problem, h200());
      EXPECT_EQ(name_of(plan.composition), name_of(kOneWaveSwapAbKernel)) << plan.reason;
      EXPECT_EQ(plan.tile, (Tile{192, 96}));
      EXPECT_EQ(plan.blocks, 128);
    }
    problem.epilogue.bias_gradient = true;
    EXPECT_EQ(kOneWaveSwapAbKernel.refuse(problem, h200()), "it sums no bias gradient.");
  }
}

// Measured to be the fastest with GELU's input stored (docs/results/gemm-hopper-h100.md): in a few waves under the next products of the
// same consumers, in many under the other consumer's.
TEST(HopperRows, AnActivationLeavesWithItsInputUnderLaterProducts) {
  const auto expect_row = [](const GemmKernel& row, std::int64_t m, std::int64_t n, std::int64_t k) {
    GemmProblem problem = aligned(m, n, k);
    problem.epilogue = {.bias = true, .activation = Activation::gelu_tanh, .saved_input = true};
    const GemmPlan plan = choose(problem, h200());
    EXPECT_EQ(name_of(plan.composition), name_of(row)) << n << " tokens: " << plan.reason;
    problem.epilogue = {.bias = true};
    EXPECT_LT(choose(problem, h200()).predicted_s, plan.predicted_s) << n << " tokens";
  };
  expect_row(kPersistentDeferredKernel, 4096, 2048, 1024);
  expect_row(kPersistentPingPongSwapAbKernel, 4096, 16384, 1024);
  expect_row(kPersistentPingPongSwapAbKernel, 3072, 65536, 768);
}

TEST(HopperRows, TurnsRefuseWhatTheyHaveNoPlaceFor) {
  const auto expect_refusal = [](auto&& change, const std::string& text) {
    GemmProblem problem = aligned(4096, 16384, 1024);
    change(problem);
    const std::string refusal = kPersistentPingPongSwapAbKernel.refuse(problem, h200());
    EXPECT_NE(refusal.find(text), std::string::npos) << refusal;
  };
  expect_refusal([](GemmProblem& p) { p.output_dtype = DType::f32; }, "not in f32");
  expect_refusal([](GemmProblem& p) { p.b_major = Major::n; }, "make B k-major");
  expect_refusal([](GemmProblem& p) { p.epilogue.bias_gradient = true; }, "no bias gradient");
  expect_refusal([](GemmProblem& p) { p.d_alignment = 8; }, "pad the pitch of D");
}

TEST(HopperRows, TurnsComeInPairsAlongM) {
  const auto plan = [](std::int64_t m, std::int64_t n) {
    return kPersistentPingPongSwapAbKernel.plan(aligned(m, n, 1024), {128, 160}, h200(), 0);
  };
  EXPECT_EQ(plan(4096, 16384).cluster, 2);
  EXPECT_EQ(plan(4096, 16384).tiling.tiles_m, 32);
  EXPECT_EQ(plan(4096, 16384).tiling.tiles_n, 103);
  EXPECT_EQ(plan(128 * 5, 160 * 200).cluster, 1) << "the last of five would have nobody beside it";
  EXPECT_EQ(plan(4096, 1600).cluster, 2);
  EXPECT_EQ(plan(2048, 1600).cluster, 1) << "less than two waves";
}

TEST(HopperRows, BlocksShareColumnsWhereNoneTakesATurnMore) {
  const auto cluster = [](const GemmKernel& row, std::int64_t m, std::int64_t n, std::int64_t k) {
    return row.plan(aligned(m, n, k), {256, 128}, h200(), 0).cluster;
  };
  for (const GemmKernel* row : {&kPersistentDeferredKernel, &kPersistentDataParallelKernel}) {
    EXPECT_EQ(cluster(*row, 4096, 5120, 1024), 2) << name_of(*row);
    EXPECT_EQ(cluster(*row, 50304, 16384, 768), 2) << name_of(*row);
    EXPECT_EQ(cluster(*row, 4096, 4224, 1024), 1) << name_of(*row) << ": 528 tiles are four waves, of which pairs would make five";
    EXPECT_EQ(cluster(*row, 4096, 2048, 1024), 1) << name_of(*row) << ": less than two waves";
  }
  GemmProblem ragged = aligned(4095, 5120, 1024);
  EXPECT_EQ(deferred_store_last_columns(ragged), 7);
  EXPECT_EQ(kPersistentDeferredKernel.plan(ragged, {256, 128}, h200(), 0).cluster, 2);
  ragged.d_alignment = 2;
  EXPECT_EQ(kPersistentDeferredKernel.plan(ragged, {256, 128}, h200(), 0).cluster, 1) << "element by element";
}

TEST(HopperRows, OneWaveHasNeighboursOnNeighbouringSms) {
  const auto cluster = [](const GemmKernel& row, std::int64_t n) {
    return row.plan(aligned(1024, n, 5120), row.tiles[0], h200(), 0).cluster;
  };
  EXPECT_EQ(cluster(kOneWaveSlicedKKernel, 1024), 2);
  EXPECT_EQ(cluster(kOneWaveSlicedKKernel, 960), 1) << "fifteen tiles along N";
  EXPECT_EQ(cluster(kOneWaveSwapAbKernel, 5120), 2);
  EXPECT_EQ(cluster(kOneWaveSwapAbKernel, 160 * 31), 1);
}

TEST(HopperRows, TilesHavePlacesWhereOneWaveReadsMoreThanL2Keeps) {
  const auto raster = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    const GemmPlan plan = kOneWaveSwapAbKernel.plan(gradient(m, n, k), {192, 96}, h200(), 0);
    EXPECT_TRUE(plan.raster.kind != RasterKind::patches || plan.cluster == 1) << "blocks choose by themselves";
    return plan.raster.kind;
  };
  EXPECT_EQ(raster(768, 3072, 16384), RasterKind::patches);
  EXPECT_EQ(raster(768, 3072, 4096), RasterKind::bands) << "what it reads stays in L2";
  EXPECT_EQ(raster(768, 3264, 16384), RasterKind::bands) << "136 tiles are more than a wave";
  EXPECT_EQ(raster(768, 768, 65536), RasterKind::bands) << "a quarter of a wave";
}

TEST(HopperRows, SlicesOfKHavePlacesWhereTheyAreLong) {
  const auto raster = [](const GemmProblem& problem) { return kOneWaveSlicedKKernel.plan(problem, {128, 64}, h200(), 0).raster.kind; };
  EXPECT_EQ(raster(gradient(1024, 1024, 2048)), RasterKind::patches);
  EXPECT_EQ(raster(gradient(1024, 1024, 1024)), RasterKind::columns) << "a choice takes longer than it saves";
  EXPECT_EQ(raster(gradient(2048, 1024, 2048)), RasterKind::columns) << "two waves";
  EXPECT_EQ(raster(aligned(1024, 1024, 2048)), RasterKind::columns) << "a forward";
  GemmProblem with_bias = gradient(1024, 1024, 2048);
  with_bias.epilogue.bias_gradient = true;
  EXPECT_EQ(raster(with_bias), RasterKind::columns) << "its kernel has no places";
}

TEST(HopperRows, PairsHalveTheKOfAWeightsGradient) {
  const GemmProblem problem = gradient(1024, 1024, 4096);
  const GemmPlan plan = choose(problem, h200());
  EXPECT_EQ(name_of(plan.composition), name_of(kOneWavePairedKKernel)) << plan.reason;
  EXPECT_EQ(plan.blocks, 128) << "64 tiles, two blocks each";
  EXPECT_EQ(plan.cluster, 2);
  EXPECT_NE(kOneWavePairedKKernel.refuse(aligned(1024, 1024, 4096), h200()).find("across K"), std::string::npos) << "a forward";
  GemmProblem changed = problem;
  changed.epilogue.bias_gradient = true;
  EXPECT_NE(kOneWavePairedKKernel.refuse(changed, h200()), "");
  changed = problem;
  changed.m = 1023;
  EXPECT_NE(kOneWavePairedKKernel.refuse(changed, h200()), "") << "rows that end anywhere";
  changed = problem;
  changed.output_dtype = DType::f32, changed.epilogue.accumulate = true;
  EXPECT_EQ(kOneWavePairedKKernel.refuse(changed, h200()), "");
}

TEST(HopperRows, PatchesHaveAsMuchInCommonAsTheyCan) {
  EXPECT_EQ(gpc_columns({128, 64}), 4);
  EXPECT_EQ(gpc_columns({64, 256}), 8);
  EXPECT_EQ(gpc_columns({256, 64}), 2);
  for (const Tile tile : {Tile{256, 128}, Tile{192, 96}, Tile{128, 192}, Tile{128, 128}}) {
    for (const auto& [m, n] : {std::pair{1024, 4096}, std::pair{3072, 768}, std::pair{1000, 3000}}) {
      const Tiling tiling = tile_waves(m, n, tile, 132);
      std::vector<int> order = gpc_order(tiling, tile);
      // 16 tiles one after another have no more rows and columns than the narrowest patch would, but where bands meet.
      const auto distinct = [&](auto&& of) {
        std::set<std::int64_t> seen;
        for (int i = 0; i < 16; ++i) seen.insert(of(order[static_cast<std::size_t>(i)]));
        return std::ssize(seen);
      };
      EXPECT_LE(distinct([&](int at) { return at % tiling.tiles_m; }), gpc_columns(tile));
      EXPECT_LE(distinct([&](int at) { return at / tiling.tiles_m; }),
                std::max(kSmsOfGpc / std::min(gpc_columns(tile), tiling.tiles_m), std::int64_t{1}) + 1);
      std::ranges::sort(order);
      ASSERT_EQ(std::ssize(order), tiling.tiles);
      for (int i = 0; i < tiling.tiles; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i) << "each once";
    }
  }
}

// Of a vocabulary that is no multiple of eight, in rows that start on 16 bytes.
TEST(HopperRows, TilesEndBeforeColumnsThatMakeNoWholeWord) {
  GemmProblem problem = aligned(50257, 16384, 768);
  problem.d_pitch = 50304;
  EXPECT_EQ(deferred_store_last_columns(problem), 1);
  EXPECT_NE(kUnalignedDeferredKernel.refuse(problem, h200()), "") << "one kernel is for these";
  const auto plan = [&] { return kPersistentDeferredKernel.plan(problem, {256, 128}, h200(), 0); };
  EXPECT_EQ(plan().tiling.tiles_m, 197);
  const double ragged = plan().predicted_s;
  problem.m = 50256;
  EXPECT_EQ(deferred_store_last_columns(problem), 0);
  EXPECT_GT(ragged, plan().predicted_s) << "they take a launch";
  EXPECT_LT(ragged, 1.05 * plan().predicted_s);

  problem.m = 256 + 7;
  EXPECT_EQ(deferred_store_last_columns(problem), 7);
  EXPECT_EQ(plan().tiling.tiles_m, 1);
  const auto with_the_others = [&](auto&& change) {
    GemmProblem other = problem;
    change(other);
    EXPECT_EQ(deferred_store_last_columns(other), 0);
  };
  with_the_others([](GemmProblem& p) { p.m = 7; });
  with_the_others([](GemmProblem& p) { p.d_alignment = 8; });
  with_the_others([](GemmProblem& p) { p.epilogue.bias = true; });
  with_the_others([](GemmProblem& p) { p.a_major = Major::m; });
  with_the_others([](GemmProblem& p) { p.d_major = Major::n; });
}

// A row may refuse together what it takes one by one, and then the sweep on a GPU leaves it without a case.
TEST(HopperRows, TheSweepHasWorkForEveryRow) {
  int rows = 0;
  for (const GemmKernel* row : gemm_catalog()) {
    if (row->backend != Backend::cuda || row->reference || name_of(*row).starts_with("guide_")) continue;  // those only plan
    ++rows;
    std::mt19937 random(11);
    const std::vector<gemm_sweep::Case> cases =
        gemm_sweep::cases_of(*row, h200(), row->tiles, {.ks = {1, 2, 7, 64, 129, 200}, .most_work = 96 << 20});
    const auto refused = std::ranges::count_if(cases, [&](const gemm_sweep::Case& c) {
      gemm_sweep::Operands operands(c, random);
      return !row->refuse(problem_of(operands.args(c)), h200()).empty();
    });
    EXPECT_GE(cases.size(), 30u) << name_of(*row);
    EXPECT_LE(8 * refused, std::ssize(cases)) << name_of(*row);
  }
  EXPECT_GE(rows, 20);
}

// What the sweep on a GPU runs, by what becomes of packed sums on their way to D.
TEST(HopperRows, TheSweepReachesEveryFormOfALateStore) {
  const GemmKernel& row = kPersistentDeferredKernel;
  std::mt19937 random(11);
  int whole = 0, activated = 0, ragged = 0, last_columns = 0, unaligned = 0;
  for (const gemm_sweep::Case& c : gemm_sweep::cases_of(row, h200(), row.tiles, {.ks = {1, 2, 7, 64, 129, 200}})) {
    gemm_sweep::Operands operands(c, random);
    const GemmProblem problem = problem_of(operands.args(c));
    if (!row.refuse(problem, h200()).empty()) continue;
    const std::int64_t cols = problem.d_major == Major::m ? problem.m : problem.n;
    if (problem.epilogue.activation != Activation::none) {
      ++activated;
    } else if (problem.d_alignment < 16) {
      ++unaligned;
    } else if (deferred_store_last_columns(problem) > 0) {
      ++last_columns;
    } else {
      ++(cols % 8 == 0 ? whole : ragged);
    }
  }
  EXPECT_GE(whole, 10);
  EXPECT_GE(activated, 10);
  EXPECT_GE(ragged, 10);
  EXPECT_GE(last_columns, 5);
  EXPECT_GE(unaligned, 10);
}

TEST(HopperRows, DerivativesMeetSumsUnderTheNextTilesProducts) {
  GemmProblem problem = aligned(1024, 5120, 4096);
  problem.a_major = Major::m;
  problem.a_pitch = 1024;
  problem.epilogue.derivative = Activation::relu;
  const GemmKernel& row = kPersistentDeferredKernel;
  EXPECT_EQ(row.refuse(problem, h200()), "");
  for (const Tile tile : kPersistentDeferredDerivativeTiles) EXPECT_GE(row.plan(problem, tile, h200(), 0).stages, 4);
  const Tile other_tile = {.m = 192, .n = 128};
  EXPECT_EQ(row.refuse(problem, h200(), {&other_tile, 1}), "its tiles for such a problem are 256x128, 128x128.");
  const auto expect_refusal = [&](auto&& change, const std::string& text) {
    GemmProblem other = problem;
    change(other);
    EXPECT_NE(row.refuse(other, h200()).find(text), std::string::npos) << row.refuse(other, h200());
  };
  expect_refusal([](GemmProblem& p) { p.epilogue.derivative = Activation::gelu_tanh; }, "GELU's derivative");
  expect_refusal([](GemmProblem& p) { p.epilogue.residual = true; }, "beside a derivative it finishes nothing");
  expect_refusal([](GemmProblem& p) { p.output_dtype = DType::f32; }, "not in f32");
  expect_refusal([](GemmProblem& p) { p.d_major = Major::n; }, "as a dgrad's");
  expect_refusal([](GemmProblem& p) { p.d_alignment = 8; }, "whole 16 bytes");
  expect_refusal([](GemmProblem& p) { p.k = 448; }, "K is below 449");
  problem.k = 449;
  EXPECT_EQ(row.refuse(problem, h200()), "");
}

TEST(HopperRows, ADerivativeMultipliesUnderTheOtherConsumersProducts) {
  GemmProblem problem = aligned(3072, 65536, 768);
  problem.a_major = Major::m;
  problem.a_pitch = 3072;
  for (const Activation activation : {Activation::relu, Activation::gelu_tanh}) {
    problem.epilogue.derivative = activation;
    const GemmPlan plan = choose(problem, h200());
    EXPECT_EQ(name_of(plan.composition), name_of(kPersistentPingPongSwapAbKernel)) << plan.reason;
    EXPECT_EQ(plan.stages, 5);
  }
}

// Which of the row's kernels a problem takes, and with it how many stages its plan has.
TEST(HopperRows, AnEpilogueHasAKernelOfItsOwnWhereItIsWholeAndOne) {
  GemmProblem problem = aligned(4096, 16384, 1024);
  const auto form = [&](const Epilogue& epilogue) {
    problem.epilogue = epilogue;
    return swap_ab_form(problem);
  };
  EXPECT_EQ(form({}), SwapAbForm::plain);
  EXPECT_EQ(form({.bias = true}), SwapAbForm::plain);
  EXPECT_EQ(form({.bias = true, .activation = Activation::gelu_erf, .saved_input = true}), SwapAbForm::activated);
  EXPECT_EQ(form({.activation = Activation::relu}), SwapAbForm::activated);
  EXPECT_EQ(form({.derivative = Activation::gelu_tanh}), SwapAbForm::sided);
  EXPECT_EQ(form({.bias = true, .residual = true}), SwapAbForm::sided);
  EXPECT_EQ(form({.accumulate = true}), SwapAbForm::sided);
  EXPECT_EQ(form({.residual = true, .accumulate = true}), SwapAbForm::any);
  EXPECT_EQ(form({.activation = Activation::relu, .residual = true}), SwapAbForm::any);
  EXPECT_EQ(form({.bias = true, .derivative = Activation::relu}), SwapAbForm::any);
  EXPECT_EQ(form({.bias = true, .saved_input = true}), SwapAbForm::any);
  problem.m = 4097;
  for (const Epilogue& epilogue : {Epilogue{}, Epilogue{.activation = Activation::relu}, Epilogue{.derivative = Activation::relu}}) {
    EXPECT_EQ(form(epilogue), SwapAbForm::any);
  }
}

TEST(HopperRows, BlocksThatMeetInTheWorkspaceAllRunAtOnce) {
  const GemmKernel& row = kSplitKKernel;
  const GemmPlan plan = row.plan(aligned(768, 768, 65536), {256, 128}, h200(), 0);
  EXPECT_EQ(plan.split, 7);  // of 18 tiles
  EXPECT_EQ(plan.blocks, 126);
  EXPECT_EQ(plan.workspace_bytes, split_k_bytes(18, 7, {256, 128}));
  EXPECT_EQ(row.plan(aligned(768, 768, 65536), {256, 128}, h200(), 100).split, 7);
  EXPECT_EQ(row.plan(aligned(1, 1, 130), {256, 128}, h200(), 0).split, 3);
  EXPECT_EQ(row.refuse(aligned(66 * 256, 128, 65), h200()), "");
  EXPECT_NE(row.refuse(aligned(67 * 256, 128, 65), h200()).find("67 tiles of 256x128 are too many for 132 SMs"), std::string::npos);
  EXPECT_EQ(row.plan(aligned(1, 1, 64), {256, 128}, h200(), 0).split, 1);
  GemmProblem finished = aligned(768, 768, 65536);
  finished.epilogue.bias = true;
  EXPECT_NE(row.refuse(finished, h200()).find("this problem has an epilogue"), std::string::npos);
}

// Whole waves take whole tiles; what they leave, and one whole wave with it, goes in equal shares.
TEST(HopperRows, StreamKSharesWhatFullWavesLeave) {
  EXPECT_EQ(stream_k_tiles(264, 132), 0);
  EXPECT_EQ(stream_k_tiles(72, 132), 72);
  EXPECT_EQ(stream_k_tiles(133, 132), 133);
  EXPECT_EQ(stream_k_tiles(1179, 132), 132 + 123);
  const auto plan_of = [](std::int64_t m, std::int64_t n) { return kStreamKKernel.plan(aligned(m, n, 4096), {256, 128}, h200(), 0); };
  const GemmPlan shared = plan_of(1024, 5120);
  EXPECT_EQ(shared.blocks, 132);
  EXPECT_EQ(shared.workspace_bytes, stream_k_workspace_bytes(132, {256, 128}));
  EXPECT_EQ(plan_of(256 * 12, 128 * 22).workspace_bytes, 0);
  // In pairs where these have no tile too many, or one of very many.
  EXPECT_EQ(shared.cluster, 2);
  EXPECT_EQ(plan_of(1024, 128 * 5).cluster, 1);
  EXPECT_EQ(plan_of(1024, 128 * 393).cluster, 2);
}

}  // namespace
}  // namespace tilewave

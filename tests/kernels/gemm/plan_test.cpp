// Choosing by predicted time or by force, what a plan says, and what run() refuses to launch.
#include "kernels/gemm/plan.h"

#include <algorithm>
#include <array>
#include <functional>
#include <gtest/gtest.h>
#include <utility>
#include <vector>

#include "kernels/core/device_profiles.h"
#include "kernels/core/queue.h"
#include "kernels/gemm/catalog.h"
#include "kernels/gemm/cpu/amx_tiles.h"
#include "kernels/gemm/facts/split.h"
#include "kernels/gemm/gemm.h"
#include "tests/kernels/gemm/gpus.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

DeviceInfo cpu(int threads) {
  return {.backend = Backend::cpu, .name = "eight lanes", .sm_count = threads, .instruction_set = {}, .vector_bytes = 32, .clock_hz = 2e9};
}

GemmProblem problem(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k, .a_pitch = k, .b_pitch = k, .d_pitch = m};
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(GemmPlan, LargeProblemsArePackedAndFewTokensAreNot) {
  EXPECT_EQ(name_of(choose(problem(512, 1536, 128), cpu(2)).composition), "packed_tiles");
  GemmProblem tf32 = problem(512, 1536, 128);
  tf32.math = MathMode::tf32;
  EXPECT_EQ(name_of(choose(tf32, cpu(2)).composition), cpu_has_amx() ? "amx_tiles" : "packed_tiles");
  EXPECT_EQ(name_of(choose(problem(512, 1, 128), cpu(2)).composition), "dot_products");
  GemmProblem half = problem(512, 1536, 128);
  half.operand_dtype = half.output_dtype = DType::f16;
  const GemmPlan plan = choose(half, cpu(2));
  EXPECT_EQ(name_of(plan.composition), "naive");
  EXPECT_NE(plan.reason.find("packed_tiles: it multiplies f32 and f64, not f16."), std::string::npos) << plan.reason;
}

// A weight's gradient over many tokens: parts of K are blocks, and tiles are D's.
TEST(GemmPlan, PartsOfKAreNoTiles) {
  GemmProblem gradient = problem(64, 96, 6144);
  gradient.role = GemmRole::wgrad;
  gradient.a_major = Major::m;
  gradient.b_major = Major::n;
  gradient.a_pitch = 64;
  gradient.b_pitch = 96;
  const GemmPlan plan = choose(gradient, cpu(2), {.forced = "packed_tiles"});
  EXPECT_EQ(plan.split, 8);
  EXPECT_EQ(plan.tiling.tiles, ceil_div(64, plan.tile.m) * ceil_div(96, plan.tile.n));
  EXPECT_EQ(plan.blocks, 8 * plan.tiling.tiles);
}

TEST(GemmPlan, SaysTilesWavesAndWhy) {
  const GemmPlan plan = choose(problem(512, 1536, 128), cpu(2));
  EXPECT_EQ(plan.blocks, ceil_div(512, plan.tile.m) * ceil_div(1536, plan.tile.n));
  EXPECT_EQ(plan.tiling.slots, 2);
  EXPECT_DOUBLE_EQ(plan.tiling.waves, static_cast<double>(plan.blocks) / 2.0);
  EXPECT_GE(plan.workspace_bytes, 2 * 4 * plan.tile.m * 128) << "two threads pack their panels of A";
  EXPECT_GT(plan.predicted_s, static_cast<double>(problem(512, 1536, 128).flops()) / (2 * 2 * 2 * 8 * 2e9)) << "faster than two FMA ports";
  EXPECT_NE(plan.reason.find("dot_products"), std::string::npos) << plan.reason;
  EXPECT_LT(plan.predicted_s, choose(problem(512, 1536, 128), cpu(1)).predicted_s);
}

TEST(GemmPlan, TheRowDoesNotDependOnTheNumberOfThreads) {
  for (const std::int64_t m : {1, 8, 65, 128, 512, 8000}) {
    for (const std::int64_t n : {1, 2, 5, 8, 11, 12, 13, 16, 33, 1536}) {
      for (const std::int64_t k : {1, 16, 127, 512}) {
        const GemmPlan one = choose(problem(m, n, k), cpu(1));
        for (const int threads : {2, 3, 5, 64})
          EXPECT_EQ(choose(problem(m, n, k), cpu(threads)).composition, one.composition) << m << " " << n << " " << k;
      }
    }
  }
}

TEST(GemmPlan, Forced) {
  const GemmProblem p = problem(512, 1536, 128);
  EXPECT_EQ(name_of(choose(p, cpu(2), {.forced = "naive"}).composition), "naive");
  const GemmPlan plan = choose(p, cpu(2), {.forced = "packed_tiles/96x96"});
  EXPECT_EQ(name_of(plan.composition), "packed_tiles");
  EXPECT_EQ(plan.tile, (Tile{.m = 96, .n = 96}));
  EXPECT_NE(plan.reason.find("forced by \"packed_tiles/96x96\""), std::string::npos) << plan.reason;
  const GemmPlan best = choose(p, cpu(2), {.forced = "packed_tiles"});
  EXPECT_LE(best.predicted_s, plan.predicted_s);

  EXPECT_THROW(choose(p, cpu(2), {.forced = "fast"}), InputError);
  const std::string row = message_of([&] { choose(p, cpu(2), {.forced = "fast"}); });
  for (const char* part : {"\"fast\"", "naive", "dot_products", "packed_tiles"}) EXPECT_NE(row.find(part), std::string::npos) << row;
  for (const char* forced : {"packed_tiles/96x97", "packed_tiles/", "packed_tiles/96x96x1"}) {
    EXPECT_THROW(choose(p, cpu(2), {.forced = forced}), InputError) << forced;
  }
  const std::string tile = message_of([&] { choose(p, cpu(2), {.forced = "packed_tiles/96x97"}); });
  for (const char* part : {"packed_tiles", "\"96x97\"", "96x96", "256x1536"}) EXPECT_NE(tile.find(part), std::string::npos) << tile;
  GemmProblem half = p;
  half.operand_dtype = DType::f16;
  EXPECT_THROW(choose(half, cpu(2), {.forced = "packed_tiles"}), InputError);
  DeviceInfo gpu = cpu(132);
  gpu.backend = Backend::cuda;
  gpu.capability = 80;
  EXPECT_THROW(choose(p, gpu, {.forced = "packed_tiles"}), InputError);
  EXPECT_EQ(name_of(choose(p, gpu, {.forced = "naive"}).composition), "naive");  // each back end has one
  gpu.capability = 75;
  EXPECT_THROW(choose(p, gpu, {.forced = "naive"}), InputError) << "for which nothing is compiled";
}

TEST(GemmPlan, RungsAreForcedAndNeverChosen) {
  GemmProblem p = problem(4096, 5120, 1024);
  p.operand_dtype = p.output_dtype = DType::bf16;
  p.a_alignment = p.b_alignment = p.d_alignment = 128;
  const DeviceInfo& h200 = device_profile("h200").device;
  const std::vector<GemmPlan> candidates = gemm_candidates(p, h200);
  int rungs = 0;
  for (const GemmKernel* kernel : gemm_catalog()) {
    if (!kernel->ladder) continue;
    ++rungs;
    GemmProblem few = p;
    if (!kernel->refuse(p, h200).empty()) few.n = 4;  // a rung of the way to a matrix times a few vectors
    EXPECT_EQ(name_of(choose(few, h200, {.forced = name_of(*kernel)}).composition), name_of(*kernel));
    EXPECT_EQ(std::ranges::count(candidates, kernel->composition, &GemmPlan::composition), 0) << name_of(*kernel);
  }
  EXPECT_GE(rungs, 3);
}

// What a plan counts is what is launched. The oracles: on a GPU 128 threads an output each, one behind the other along M and on into the
// next column; on a CPU an output at a time. cuda_cores: 32 outputs along D's rows in memory and 8 of these, whichever way D lies.
TEST(GemmPlan, BlocksOfTheFirstRungsAreThoseOfTheirLaunches) {
  const DeviceInfo gpu = h200();
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{4096, 512}, {100, 33}, {1, 1000}, {1000, 1}, {127, 1}, {1, 1}}) {
    const GemmPlan naive = choose(problem(m, n, 64), gpu, {.forced = "naive"});
    EXPECT_EQ(naive.tile, (Tile{.m = 128, .n = 1}));
    EXPECT_EQ(naive.blocks, ceil_div(m * n, 128)) << m << " x " << n;
    EXPECT_EQ(naive.tiling.tiles, naive.blocks);
    EXPECT_DOUBLE_EQ(naive.tiling.useful_fraction, static_cast<double>(m * n) / static_cast<double>(128 * naive.blocks));
    EXPECT_EQ(naive, choose(problem(m, n, 64), gpu, {.forced = "naive/128x1"}));
    const GemmPlan on_cpu = choose(problem(m, n, 64), cpu(2), {.forced = "naive"});
    EXPECT_EQ(on_cpu.tile, (Tile{.m = 1, .n = 1}));
    EXPECT_EQ(on_cpu.blocks, m * n);

    GemmProblem turned = problem(m, n, 64);
    EXPECT_EQ(choose(turned, gpu, {.forced = "cuda_cores"}).blocks, ceil_div(m, 32) * ceil_div(n, 8));
    turned.d_major = Major::n;
    turned.d_pitch = n;
    EXPECT_EQ(choose(turned, gpu, {.forced = "cuda_cores"}).blocks, ceil_div(n, 32) * ceil_div(m, 8)) << m << " x " << n;
  }
}

// Blocks of at most 99 KiB of shared memory have room for some of a row's tiles.
TEST(GemmPlan, TilesThatFitTheDevice) {
  const DeviceInfo l4 = device_profile("l4").device;
  GemmProblem p = problem(4096, 4096, 1024);
  p.operand_dtype = p.output_dtype = DType::bf16;
  p.a_alignment = p.b_alignment = p.d_alignment = 128;
  const GemmPlan plan = choose(p, l4);
  EXPECT_EQ(name_of(plan.composition), "tensor_core_persistent") << plan.reason;
  EXPECT_EQ(plan.tile, (Tile{.m = 128, .n = 128}));
  for (const GemmPlan& candidate : gemm_candidates(p, l4)) EXPECT_TRUE(kernel_of(Backend::cuda, candidate).fits(p, candidate.tile, l4));

  EXPECT_EQ(choose(p, l4, {.forced = "tensor_core_persistent/64x128"}).tile, (Tile{.m = 64, .n = 128}));
  EXPECT_EQ(message_of([&] { choose(p, l4, {.forced = "tensor_core_persistent/256x128"}); }),
            "the bf16 forward gemm M x N x K = 4096 x 4096 x 1024 cannot run as \"tensor_core_persistent/256x128\": "
            "tensor_core_persistent: a block of 256x128 needs 147456 bytes of shared memory, and the device gives 101376; of its tiles "
            "there fit 128x128, 128x64, 64x128, 64x64.");
  DeviceInfo little = l4;
  little.shared_bytes = 40 << 10;
  EXPECT_EQ(find_gemm_kernel("tensor_core_persistent")->refuse(p, little),
            "a block of 64x64 needs 49152 bytes of shared memory, and the device gives 40960.");
}

// 160 tiles on 132 SMs: those that the whole wave leaves are cut, and no others.
TEST(GemmPlan, TilesThatWholeWavesLeaveAreTakenInParts) {
  const DeviceInfo h200 = device_profile("h200").device;
  for (const char* name : {"tensor_core_persistent", "bulk_copy_mma"}) {
    const GemmKernel& row = *find_gemm_kernel(name);
    GemmProblem p = problem(1024, 5120, 4096);
    p.operand_dtype = p.output_dtype = DType::bf16;
    p.a_alignment = p.b_alignment = p.d_alignment = 128;
    const GemmPlan plan = row.plan(p, {.m = 256, .n = 128}, h200, 0);
    EXPECT_EQ(plan.split, 4);
    EXPECT_EQ(plan.whole_tiles, 132);
    EXPECT_EQ(plan.items(), 132 + 4 * 28);
    EXPECT_EQ(plan.blocks, 132);
    EXPECT_EQ(plan.workspace_bytes, 4 * 28 * 256 * 128 * 4);
    EXPECT_EQ(row.plan(p, {.m = 256, .n = 128}, h200, 4), plan) << "a stored plan says the same again";
    EXPECT_LT(plan.predicted_s, row.plan(p, {.m = 256, .n = 128}, h200, 1).predicted_s);

    p.n = 132 * 128;  // four whole waves
    const GemmPlan whole = row.plan(p, {.m = 256, .n = 128}, h200, 4);
    EXPECT_EQ(whole.split, 1);
    EXPECT_EQ(whole.workspace_bytes, 0);
    p.n = 640;  // less than one
    const GemmPlan all = row.plan(p, {.m = 256, .n = 128}, h200, 0);
    EXPECT_GT(all.split, 1);
    EXPECT_EQ(all.whole_tiles, 0);
    EXPECT_EQ(all.items(), 20 * all.split);

    p.m = 13 * 256 - 24, p.n = 14 * 128 - 8, p.k = 1096;  // as on a GPU GpuGemmCatalog.BlocksThatStayTakeTileAfterTile has it run
    const GemmPlan swept = row.plan(p, {.m = 256, .n = 128}, h200, 0);
    EXPECT_EQ(swept.split, 2);
    EXPECT_EQ(swept.whole_tiles, 132) << name;
  }
}

// mma.sync fed by TMA asks for the engine and for three stages of a tile and its strips; on Hopper wgmma is faster.
TEST(GemmPlan, TheCopyEngineFeedsMmaWhereThereIsOne) {
  const GemmKernel& row = *find_gemm_kernel("bulk_copy_mma");
  GemmProblem p = problem(4096, 5120, 1024);
  p.operand_dtype = p.output_dtype = DType::bf16;
  p.a_alignment = p.b_alignment = p.d_alignment = 128;
  const DeviceInfo h200 = device_profile("h200").device;
  EXPECT_EQ(row.refuse(p, h200), "");
  EXPECT_LT(row.plan(p, {.m = 256, .n = 128}, h200, 0).predicted_s,
            find_gemm_kernel("tensor_core_persistent")->plan(p, {.m = 256, .n = 128}, h200, 0).predicted_s);
  EXPECT_NE(name_of(choose(p, h200).composition), name_of(row));
  GemmProblem odd = p;
  odd.d_alignment = 8;
  EXPECT_GT(row.plan(odd, {.m = 256, .n = 128}, h200, 0).predicted_s, row.plan(p, {.m = 256, .n = 128}, h200, 0).predicted_s)
      << "warps store what the engine cannot";
  const DeviceInfo b200 = probed("b200");  // which none of the rows on wgmma runs on
  EXPECT_EQ(name_of(choose(p, b200).composition), name_of(row)) << choose(p, b200).reason;
  DeviceInfo small = b200;
  small.capability = 120, small.shared_bytes = 99 << 10;
  EXPECT_EQ(row.refuse(p, small), "a block of 256x128 needs 213248 bytes of shared memory, and the device gives 101376.");
  EXPECT_EQ(row.refuse(p, device_profile("a100").device), "it needs TMA of compute capability 9.0 or newer.");

  GemmProblem unaligned = p;
  unaligned.b_alignment = 8;
  EXPECT_EQ(row.refuse(unaligned, h200), "rows of its operands start on 16 bytes; A's start on 128 and B's on 8.");
  GemmProblem wide = p;
  wide.operand_dtype = wide.output_dtype = DType::f32, wide.math = MathMode::tf32;
  EXPECT_EQ(row.refuse(wide, h200), "its operands are bf16 or f16.");
  wide.operand_dtype = wide.output_dtype = DType::f64, wide.math = MathMode::ieee;
  EXPECT_EQ(row.refuse(wide, h200), "its operands are bf16 or f16.");
  GemmProblem huge = p;
  huge.n = std::int64_t{1} << 31;
  EXPECT_NE(row.refuse(huge, h200).find("does not fit TMA's 32-bit coordinates"), std::string::npos);
}

// In either order each part of each tile is taken once, a tile's in the order of K.
TEST(GemmPlan, EachPartOfATileIsTakenOnce) {
  for (const auto& [whole, cut, split] : {std::array{132, 28, 4}, {0, 20, 6}, {264, 0, 1}, {3, 1, 2}}) {
    std::vector<int> by_tile(static_cast<std::size_t>(whole + cut)), by_part = by_tile;  // parts taken
    for (int item = 0; item < whole + cut * split; ++item) {
      for (const auto& [take, taken] :
           {std::pair{tile_by_tile(item, whole, split), &by_tile}, {slice_by_slice(item, whole, whole + cut), &by_part}}) {
        ASSERT_LT(take.tile, whole + cut);
        ASSERT_EQ(take.part, (*taken)[static_cast<std::size_t>(take.tile)]++);
      }
    }
    for (int tile = 0; tile < whole + cut; ++tile) {
      EXPECT_EQ(by_tile[static_cast<std::size_t>(tile)], tile < whole ? 1 : split);
    }
    EXPECT_EQ(by_part, by_tile);
  }
  EXPECT_EQ(tile_by_tile(133, 132, 4).tile, 132) << "a tile's parts side by side";
  EXPECT_EQ(slice_by_slice(133, 132, 160).tile, 133) << "tiles' first parts side by side";
}

TEST(GemmPlan, AnUnknownClockStillRanks) {
  DeviceInfo device = cpu(2);
  const GemmPlan known = choose(problem(512, 1536, 128), device);
  device.clock_hz = 0.0;
  const GemmPlan unknown = choose(problem(512, 1536, 128), device);
  EXPECT_EQ(unknown, known);
  EXPECT_DOUBLE_EQ(unknown.predicted_s, 2.0 * known.predicted_s);
}

TEST(GemmRun, RefusesWhatThePlanWasNotChosenFor) {
  std::vector<float> a(64 * 32, 1.0f), b(48 * 64, 1.0f), d(48 * 64), side(48 * 64);  // D fits into b
  const auto matrix = [](std::vector<float>& data, std::int64_t rows, std::int64_t cols) {
    return MatrixView{.data = data.data(), .rows = rows, .cols = cols, .ld = cols, .dtype = DType::f32};
  };
  const GemmArgs good = {.a = matrix(a, 64, 32), .b = matrix(b, 48, 32), .d = matrix(d, 48, 64)};
  CpuQueue queue = make_cpu_queue(2);
  const GemmPlan plan = choose(problem_of(good), probe_cpu(2), {.forced = "packed_tiles"});
  std::vector<std::byte> workspace(static_cast<std::size_t>(plan.workspace_bytes));
  const auto message = [&](const std::function<void(GemmArgs&)>& spoil) {
    GemmArgs args = good;
    args.plan = &plan;
    args.workspace = workspace.data();
    spoil(args);
    return message_of([&] { run(queue, args); });
  };
  const auto expect = [&](const char* part, const std::function<void(GemmArgs&)>& spoil) {
    const std::string said = message(spoil);
    EXPECT_NE(said.find(part), std::string::npos) << part << " is not in: " << said;
  };
  EXPECT_EQ(message([](GemmArgs&) {}), "");
  EXPECT_FLOAT_EQ(d[0], 32.0f);

  GemmPlan stranger = plan, no_tile = plan, other = choose(problem(64, 48, 64), probe_cpu(2), {.forced = "packed_tiles"});
  stranger.composition.kernel = "fast";
  no_tile.tile = {};
  expect("no plan", [](GemmArgs& args) { args.plan = nullptr; });
  expect("\"fast\"", [&](GemmArgs& args) { args.plan = &stranger; });
  expect("no tile 0x0", [&](GemmArgs& args) { args.plan = &no_tile; });
  expect("another problem", [&](GemmArgs& args) { args.plan = &other; });
  expect("workspace", [](GemmArgs& args) { args.workspace = nullptr; });
  expect("storage", [](GemmArgs& args) { args.d.data = nullptr; });
  expect("B overlaps D", [](GemmArgs& args) { args.d.data = const_cast<float*>(args.b.row<float>(0)); });
  expect("derivative_of overlaps D", [](GemmArgs& args) {
    args.derivative_of = args.d;
    args.derivative = Activation::relu;
  });
  expect("residual overlaps D", [&](GemmArgs& args) {
    args.residual = args.d;
    args.residual.data = d.data() + 64;
  });
  expect("residual is bf16; it must have D's type, f32, or the operands', f32", [&](GemmArgs& args) {
    args.residual = matrix(side, 48, 64);
    args.residual.dtype = DType::bf16;
  });
  expect("one type", [&](GemmArgs& args) {
    args.bias = matrix(side, 1, 64);
    args.bias.dtype = DType::bf16;
  });
  expect("does not run this problem: it stores no sums of D over N", [&](GemmArgs& args) { args.output_sums = matrix(side, 1, 64); });
  EXPECT_EQ(message([](GemmArgs& args) { args.residual = args.d; }), "");

  // Columns of one buffer, side by side, do not overlap.
  std::vector<float> wide(48 * 128, 1.0f);
  EXPECT_EQ(message([&](GemmArgs& args) {
              args.d = {.data = wide.data(), .rows = 48, .cols = 64, .ld = 128, .dtype = DType::f32};
              args.residual = MatrixView{.data = wide.data() + 64, .rows = 48, .cols = 64, .ld = 128, .dtype = DType::f32};
            }),
            "");
  EXPECT_FLOAT_EQ(wide[0], 33.0f);
}

TEST(ProbeCpu, TellsWhatPlanningNeeds) {
  const DeviceInfo device = probe_cpu(3);
  EXPECT_EQ(device.backend, Backend::cpu);
  EXPECT_EQ(device.sm_count, 3);
  EXPECT_GE(probe_cpu().sm_count, 1);
  EXPECT_FALSE(device.name.empty());
  EXPECT_FALSE(device.instruction_set.empty());
  EXPECT_TRUE(device.instruction_set.starts_with(test_environment().simd)) << device.instruction_set;
  EXPECT_GE(device.vector_bytes, 1);
  EXPECT_GT(device.memory_bytes, 1 << 20);
  EXPECT_GE(device.l2_bytes, device.l1_bytes);
}

// A forced number of parts: 1 leaves out what splits K and what streams it.
TEST(GemmPlan, TheSplitOfKCanBeForced) {
  const DeviceInfo& h200 = device_profile("h200").device;
  GemmProblem p = problem(1024, 1024, 16384);
  p.operand_dtype = p.output_dtype = DType::bf16;
  p.a_alignment = p.b_alignment = p.d_alignment = 128;
  const GemmPlan free = choose(p, h200);
  EXPECT_TRUE(free.split > 1 || free.streams_k) << "the shape is one that the model splits: " << name_of(free);
  const GemmPlan whole = choose(p, h200, {.split = 1});
  EXPECT_EQ(whole.split, 1);
  EXPECT_FALSE(whole.streams_k);
  EXPECT_GE(whole.predicted_s, free.predicted_s);
  for (const GemmPlan& plan : gemm_candidates(p, h200, {.split = 1})) {
    EXPECT_EQ(plan.split, 1) << name_of(plan.composition);
    EXPECT_FALSE(plan.streams_k) << name_of(plan.composition);
  }
  EXPECT_EQ(choose(p, h200, {.split = 2}).split, 2);
  const std::string many = message_of([&] { choose(p, h200, {.split = 65}); });
  EXPECT_NE(many.find("no kernel takes its K in 65 parts"), std::string::npos) << many;
  EXPECT_NE(message_of([&] { choose(p, h200, {.forced = "stream_k", .split = 1}); }).find("no kernel that \"stream_k\" names"),
            std::string::npos);
  const DeviceInfo here = cpu(2);
  EXPECT_EQ(choose(problem(256, 256, 256), here, {.split = 1}), choose(problem(256, 256, 256), here));
}

}  // namespace
}  // namespace tilewave

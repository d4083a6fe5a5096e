// A matrix times a few vectors: when it is chosen, what it refuses, and how words, lanes, warps and parts of K share it.
#include "kernels/gemm/gemv/gemv.h"

#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <set>
#include <string>

#include "kernels/gemm/catalog.h"
#include "kernels/gemm/gemv/gemv_axpy.h"
#include "kernels/gemm/gemv/gemv_axpy_mma.h"
#include "kernels/gemm/gemv/gemv_dot.h"
#include "kernels/gemm/gemv/gemv_dot_mma.h"
#include "kernels/gemm/gemv/gemv_words.h"
#include "tests/kernels/gemm/gpus.h"

namespace tilewave {
namespace {

// A layer's GEMM, its rows packed.
GemmProblem gemv_layer(GemmRole role, std::int64_t m, std::int64_t n, std::int64_t k, DType dtype) {
  GemmProblem p = {.role = role, .m = m, .n = n, .k = k, .operand_dtype = dtype, .output_dtype = dtype};
  p.a_major = role == GemmRole::forward ? Major::k : Major::m;
  p.b_major = role == GemmRole::wgrad ? Major::n : Major::k;
  p.a_pitch = p.a_major == Major::k ? k : m, p.b_pitch = p.b_major == Major::k ? k : n, p.d_pitch = m;
  const std::int64_t size = size_of(dtype);
  p.a_alignment = alignment_of(0, p.a_pitch * size), p.b_alignment = alignment_of(0, p.b_pitch * size);
  p.d_alignment = alignment_of(0, p.d_pitch * size);
  return p;
}

std::string chosen_gemv(const GemmProblem& p) { return name_of(choose(p, h200()).composition); }

TEST(Gemv, IsChosenForOneToSixteenTokensOrOutputs) {
  for (std::int64_t few = 1; few <= 16; ++few) {
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
      const std::string mma = dtype == DType::f32 ? "" : "_mma";
      const std::string tokens = chosen_gemv(gemv_layer(GemmRole::forward, 4096, few, 4096, dtype));
      const std::string outputs = chosen_gemv(gemv_layer(GemmRole::forward, few, 16384, 2048, dtype));
      const bool alone = few == 1;  // for one vector a CTA a row is another that may be faster
      EXPECT_TRUE(tokens == "gemv_dot" + mma || (alone && tokens == "gemv_block_rows")) << few << " tokens: " << tokens;
      EXPECT_TRUE(outputs == "gemv_dot" + mma || (alone && outputs == "gemv_block_rows")) << few << " outputs: " << outputs;
      // Across K tiles may be faster; the kernel takes all of them.
      const GemmKernel& across = *find_gemm_kernel(Backend::cuda, "gemv_axpy" + mma);
      for (const GemmProblem& problem :
           {gemv_layer(GemmRole::dgrad, 4096, few, 4096, dtype), gemv_layer(GemmRole::wgrad, 2048, few, 16384, dtype),
            gemv_layer(GemmRole::wgrad, few, 2048, 16384, dtype)}) {
        EXPECT_EQ(across.refuse(problem, h200(), across.tiles), "") << few;
      }
    }
  }
  EXPECT_TRUE(chosen_gemv(gemv_layer(GemmRole::forward, 4097, 3, 4099, DType::bf16)).starts_with("gemv_")) << "rows that begin anywhere";
  for (const std::int64_t more : {17, 32, 128, 4096}) {
    for (const GemmRole role : {GemmRole::forward, GemmRole::dgrad, GemmRole::wgrad}) {
      EXPECT_FALSE(chosen_gemv(gemv_layer(role, 4096, more, 4096, DType::bf16)).starts_with("gemv_")) << more;
      EXPECT_FALSE(chosen_gemv(gemv_layer(role, more, 4096, 4096, DType::bf16)).starts_with("gemv_")) << more;
    }
  }
}

TEST(Gemv, PlansAreOfWhatIsLaunched) {
  const GemmPlan plan = choose(gemv_layer(GemmRole::forward, 4000, 5, 4096, DType::bf16), h200(), {.forced = "gemv_dot_mma/32x16"});
  EXPECT_EQ(plan.tiling.tiles, 125);
  EXPECT_EQ(plan.blocks, 125 * plan.split);
  EXPECT_EQ(name_of(plan), plan.split > 1 ? concat("gemv_dot_mma/32x16/k", plan.split) : "gemv_dot_mma/32x16");
  const GemmPlan outputs = choose(gemv_layer(GemmRole::forward, 5, 4000, 4096, DType::bf16), h200(), {.forced = "gemv_dot_mma"});
  EXPECT_EQ(outputs.tile.m, 16);
  EXPECT_EQ(outputs.tiling.tiles, ceil_div(4000, outputs.tile.n));

  // Few rows and a long K: CTAs share it, as many as are asked for.
  const GemmProblem longer = gemv_layer(GemmRole::wgrad, 256, 4, 262144, DType::bf16);
  const GemmPlan split = choose(longer, h200());
  EXPECT_GT(split.split, 4);
  EXPECT_EQ(split.workspace_bytes, std::int64_t{split.split} * 4 * 256 * 4);
  EXPECT_EQ(choose(longer, h200(), {.forced = "gemv_axpy_mma/k3"}).split, 3);
  EXPECT_EQ(choose(longer, h200(), {.split = 1}).split, 1);
  EXPECT_LT(split.predicted_s, choose(longer, h200(), {.forced = "gemv_axpy_mma/k1"}).predicted_s);
}

TEST(Gemv, TimeIsThatOfMemoryWhereThereIsMuch) {
  const DeviceInfo device = h200();
  for (const std::int64_t tokens : {1, 8, 16}) {
    const GemmProblem p = gemv_layer(GemmRole::forward, 16384, tokens, 16384, DType::bf16);
    const double floor = static_cast<double>(p.bytes()) / device.bandwidth_bytes_per_s, seconds = choose(p, device).predicted_s;
    EXPECT_GT(seconds, floor / 0.95);
    EXPECT_LT(seconds, floor / 0.8);
  }
}

TEST(Gemv, RefusalsSayWhy) {
  const DeviceInfo device = h200();
  const auto refusal = [&](const GemmKernel& kernel, const GemmProblem& p) { return kernel.refuse(p, device); };
  const GemmProblem forward = gemv_layer(GemmRole::forward, 4096, 4, 4096, DType::bf16);
  EXPECT_EQ(refusal(kGemvDotMmaKernel, forward), "");
  EXPECT_EQ(refusal(kGemvDotKernel, forward), "");
  EXPECT_EQ(refusal(kGemvAxpyMmaKernel, forward), "it reads a matrix whose rows lie across K, and those of A lie along it.");
  EXPECT_EQ(refusal(kGemvAxpyKernel, forward), "its operands are f32 or f64; gemv_axpy_mma takes bf16 and f16.");
  EXPECT_EQ(refusal(kGemvDotMmaKernel, gemv_layer(GemmRole::dgrad, 4096, 4, 4096, DType::bf16)),
            "it reads a matrix whose rows lie along K, and those of A lie across it.");
  EXPECT_EQ(refusal(kGemvDotMmaKernel, gemv_layer(GemmRole::forward, 4096, 17, 4096, DType::bf16)),
            "it is there for 1 to 16 outputs or tokens, and here M = 4096 and N = 17.");
  EXPECT_EQ(refusal(kGemvDotMmaKernel, gemv_layer(GemmRole::forward, 4096, 4, 4096, DType::f32)), "its operands are bf16 or f16.");
  EXPECT_EQ(refusal(kGemvDotKernel, gemv_layer(GemmRole::forward, 4096, 9, 4096, DType::bf16)),
            "of 16-bit elements it takes 1 to 8 outputs or tokens; here M = 4096 and N = 9.");
  EXPECT_NE(kGemvDotKernel.refuse(gemv_layer(GemmRole::forward, 13, 3, 104, DType::bf16), device, std::span(kGemvTiles).last(1)), "")
      << "thirteen vectors times a matrix of three rows";
  EXPECT_EQ(refusal(kGemvDotKernel, gemv_layer(GemmRole::forward, 4096, 9, 4096, DType::f32)), "");

  GemmProblem sums = gemv_layer(GemmRole::wgrad, 16, 4096, 8192, DType::bf16);
  sums.epilogue.bias_gradient = true;
  EXPECT_EQ(refusal(kGemvAxpyMmaKernel, sums), "beside a bias gradient it takes 1 to 15 inputs, not 16.");
  sums.m = 15;
  EXPECT_EQ(refusal(kGemvAxpyMmaKernel, sums), "");
  sums.a_major = Major::k, sums.b_major = Major::k;
  EXPECT_EQ(refusal(kGemvDotMmaKernel, sums), "it sums no bias gradient; gemv_axpy_mma does, and tiles do.");
  GemmProblem i32 = forward;
  i32.operand_dtype = i32.output_dtype = DType::i32;
  for (const GemmKernel* kernel : {&kGemvDotKernel, &kGemvDotMmaKernel, &kGemvAxpyKernel, &kGemvAxpyMmaKernel}) {
    EXPECT_NE(refusal(*kernel, i32), "") << name_of(*kernel);
    GemmProblem output_sums = forward;
    output_sums.epilogue.output_sums = true;
    EXPECT_NE(refusal(*kernel, output_sums), "") << name_of(*kernel);
  }
  try {
    choose(forward, device, {.forced = "gemv_dot_mma/16x128"});
    ADD_FAILURE() << "a tile of the other side was taken";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("its tiles for such a problem are 16x16, 32x16, 64x16, 128x16."), std::string::npos)
        << error.what();
  }
}

// The guide's strict policy keeps unaligned 16 bits from Tensor Cores.
TEST(Gemv, StrictPolicyTakesCudaCores) {
  const GemmProblem odd = gemv_layer(GemmRole::forward, 4095, 4, 4095, DType::bf16);
  EXPECT_EQ(chosen_gemv(odd), "gemv_dot_mma");
  EXPECT_EQ(name_of(choose(odd, h200(), {.alignment_policy = AlignmentPolicy::strict}).composition), "gemv_dot");
}

TEST(Gemv, WarpsShareATile) {
  for (const std::int64_t tile_rows : {16, 32, 64, 128}) {
    for (const std::int64_t rows : {2, 4, 8, 16, 32, 64}) {
      const GemvWarps warps = gemv_warps(tile_rows, rows);
      EXPECT_EQ(warps.beside * warps.along_k, kGemvWarps);
      EXPECT_GE(std::int64_t{warps.beside} * warps.turns * rows, tile_rows) << tile_rows << " by " << rows;
      if (tile_rows >= rows) {
        EXPECT_EQ(std::int64_t{warps.beside} * warps.turns * rows, tile_rows);
      }
    }
  }
}

TEST(Gemv, PartsMeetInGroupsThatHaveFlags) {
  EXPECT_EQ(gemv_groups(1), 0);
  EXPECT_EQ(gemv_groups(kGemvGroup), 0) << "these meet at once";
  EXPECT_EQ(gemv_groups(kGemvGroup + 1), 2);
  EXPECT_EQ(gemv_groups(64), 8);
  EXPECT_EQ(gemv_flags(5, 1), 0);
  EXPECT_EQ(gemv_flags(5, 8), 5);
  EXPECT_EQ(gemv_flags(5, 17), 5 + 5 * 3);
  // Many tiles are not cut: a stream has 32 flags an SM.
  const DeviceInfo device = h200();
  const GemmPlan plan = kGemvDotMmaKernel.plan(gemv_layer(GemmRole::forward, 8000, 1, 65536, DType::bf16), kGemvTiles[0], device, 9);
  EXPECT_EQ(plan.split, 1);
  const GemmPlan fewer = kGemvDotMmaKernel.plan(gemv_layer(GemmRole::forward, 6400, 1, 65536, DType::bf16), kGemvTiles[0], device, 9);
  EXPECT_EQ(fewer.split, 9);
  EXPECT_LE(gemv_flags(400, 64), 32 * device.sm_count);
}

TEST(Gemv, PartsAndWordsCoverK) {
  for (std::int64_t k = 1; k < 3000; k += 7) {
    for (std::int64_t split = 1; split <= 9; ++split) {
      const std::int64_t part = gemv_part_depth(k, split);
      EXPECT_GE(part * split, k);
      EXPECT_EQ(part % 16, 0);
    }
    for (const std::int64_t elements : {2, 4, 8}) {
      const int aligned = gemv_words_end(k, elements, false), anywhere = gemv_words_end(k, elements, true);
      EXPECT_EQ(aligned, k / elements * elements);
      EXPECT_EQ(anywhere % elements, 0);
      EXPECT_LE(anywhere + (anywhere > 0 ? elements : 0), k) << "the second word of the last ends behind the row";
      EXPECT_LT(k - anywhere, 2 * elements);
    }
  }
}

template <int kSize>
void expect_shifted() {
  for (int shift = 0; shift < 16; shift += kSize) {
    unsigned char bytes[32], expected[16];
    std::iota(std::begin(bytes), std::end(bytes), static_cast<unsigned char>(1));
    std::memcpy(expected, bytes + shift, sizeof expected);
    std::uint32_t words[8];
    std::memcpy(words, bytes, sizeof words);
    shift_words<kSize>(words, shift);
    EXPECT_EQ(std::memcmp(words, expected, sizeof expected), 0) << "elements of " << kSize << " bytes, shifted by " << shift;
  }
}

TEST(Gemv, WordsAreShiftedByElements) {
  expect_shifted<2>();
  expect_shifted<4>();
  expect_shifted<8>();
}

// Every value has lanes of its own, all of them alike.
template <int kCount>
void expect_each_value_once() {
  std::vector<int> lanes(kCount);
  constexpr std::size_t kEach = kCount > 32 ? kCount / 32 : 1;
  for (int lane = 0; lane < 32; ++lane) {
    for (std::size_t i = 0; i < kEach; ++i) ++lanes[static_cast<std::size_t>(first_value_of_lane<kCount>(lane)) + i];
  }
  EXPECT_EQ(std::set<int>(lanes.begin(), lanes.end()), std::set<int>{kCount < 32 ? 32 / kCount : 1}) << kCount;
}

TEST(Gemv, SumsOverLanesAreSharedOut) {
  expect_each_value_once<8>();
  expect_each_value_once<16>();
  expect_each_value_once<32>();
  expect_each_value_once<64>();
}

}  // namespace
}  // namespace tilewave

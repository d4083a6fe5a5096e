// The worked numbers of NVIDIA's guide, and the same arithmetic for an H200, as one table: what tilewave computes beside what is
// printed. MM: Matrix Multiplication Background, FC: Optimizing Linear/Fully-Connected Layers, DL: Deep Learning Performance.
#include <gtest/gtest.h>
#include <vector>

#include "kernels/core/unit_rates.h"
#include "kernels/gemm/catalog.h"
#include "kernels/gemm/guide_tiles.h"
#include "kernels/ops/activation.h"
#include "kernels/ops/layer_norm.h"
#include "models/planning/gemm_answer.h"
#include "models/planning/launch_limit.h"
#include "models/planning/plan.h"
#include "models/recipe/guidelines.h"
#include "tests/models/planning/convolutions.h"
#include "tests/models/planning/problems.h"

namespace tilewave {
namespace {

constexpr Tile k256x128 = {.m = 256, .n = 128}, k128x256 = {.m = 128, .n = 256}, k128x128 = {.m = 128, .n = 128};
constexpr std::int64_t kV100 = 80, kA100 = 108, kH200 = 132;  // SMs

double intensity_of(const GemmProblem& problem) { return intensity({.flops = problem.flops(), .bytes = problem.bytes()}); }

// The batch from which on a 4096 x 4096 layer is math-limited: 4096 b / (4096 + 2 b) = ops:byte, solved for b.
double crossover(std::string_view key) {
  const double ratio = ops_per_byte(device(key), DType::f16, MathMode::ieee);
  const double batch = 4096.0 * ratio / (4096.0 - 2.0 * ratio);
  EXPECT_LT(intensity_of(gemm(4096, static_cast<std::int64_t>(batch), 4096)), ratio);
  EXPECT_GT(intensity_of(gemm(4096, static_cast<std::int64_t>(batch) + 1, 4096)), ratio);
  return batch;
}

// Tokens from one whole number of waves to the next.
std::int64_t wave_free_period(std::int64_t out, Tile tile, std::int64_t sms) {
  return columns_of_whole_waves(sms, ceil_div(out, tile.m)) * tile.n;
}

// Pooling over a window of window x window at every element, 2 bytes each: every input and output moved once.
double pooling_intensity(std::int64_t window) {
  constexpr std::int64_t kElements = 64 * 64;
  return intensity({.flops = window * window * kElements, .bytes = 2 * (kElements + kElements)});
}

// The fewest elements that rows which follow one another may have to start on so many bytes.
std::int64_t least_row(std::int64_t element_bytes, std::int64_t bytes) {
  std::int64_t elements = 1;
  while (alignment_of(0, elements * element_bytes) < bytes) ++elements;
  return elements;
}

double relu_intensity() {
  std::vector<std::uint16_t> data(64);
  const MatrixView view{.data = data.data(), .rows = 8, .cols = 8, .ld = 8, .dtype = DType::f16};
  return intensity(cost(ActivationArgs{.x = view, .y = view}));
}

double layer_norm_intensity() {
  const auto view = [](std::int64_t rows, std::int64_t cols, DType dtype) {
    return MatrixView{.data = nullptr, .rows = rows, .cols = cols, .ld = cols, .dtype = dtype};
  };
  return intensity(cost(LayerNormArgs{.x = view(4096, 1024, DType::f16),
                                      .gamma = view(1, 1024, DType::f16),
                                      .beta = view(1, 1024, DType::f16),
                                      .y = view(4096, 1024, DType::f16),
                                      .mean = view(4096, 1, DType::f32),
                                      .rstd = view(4096, 1, DType::f32)}));
}

struct Number {
  const char* where;
  const char* what;
  double computed;
  double printed;
  double tolerance = 0.0;  // the digits that the guide leaves out
};

std::vector<Number> numbers() {
  const auto waves = [](std::int64_t m, std::int64_t n, std::int64_t sms, Tile tile = k256x128) { return tile_waves(m, n, tile, sms); };
  const auto count = [](std::int64_t value) { return static_cast<double>(value); };
  const DeviceProfile& v100 = device_profile("v100");
  const auto ratio = [](std::string_view key) { return ops_per_byte(device(key), DType::f16, MathMode::ieee); };
  const auto figure20 = [&](std::int64_t n, Tile tile) {
    return answer_in_tile(convolution({.count = n, .channels = 256, .height = 16, .width = 16}, 256, same(3), "v100"), tile, "v100");
  };
  const std::vector<ConvolutionPhase> full = figure20(40, k128x128), more = figure20(41, k128x128);
  const ConvolutionPhase &forward_of_20 = full[0], &dgrad_of_20 = full[1], &wgrad_of_20 = full[2];
  const ConvolutionQuestion wide = convolution({.count = 256, .channels = 64, .height = 56, .width = 56}, 128, same(3), "v100"),
                            narrow = convolution({.count = 8, .channels = 32, .height = 16, .width = 16}, 64, same(3), "v100");
  const ConvolutionPhase wide_forward = answer(wide, device("v100"))[0];
  const LayerGemm layer{.out = 4096, .in = 1024, .tokens = 512};
  const auto in_role = [&](GemmRole role) {
    LayerGemm one = layer;
    one.role = role;
    return plain_gemm(one, Precision::fp16, PitchPolicy::packed);
  };
  const GemmProblem forward = in_role(GemmRole::forward), dgrad = in_role(GemmRole::dgrad), wgrad = in_role(GemmRole::wgrad);
  const Tiling h200_guide = waves(4096, 2560, kH200), h200_wide = waves(4096, 4224, kH200, k128x256);

  return {
      // Arithmetic and its limits.
      {"MM 2", "FLOPs of 3 x 5 x 7", count(gemm(3, 5, 7).flops()), 2.0 * 3 * 5 * 7},
      {"MM 2", "intensity 8192 x 128 x 8192", intensity_of(gemm(8192, 128, 8192)), 124.1, 0.05},
      {"MM 2", "intensity 8192^3", intensity_of(gemm(8192, 8192, 8192)), 2730.67, 0.005},
      {"DL 3.1", "V100 by rate and clock, TFLOP/s", 1e-12 * 80 * 2.0 * kVoltaRates.tensor_fp16 * 1.53e9, 125.3, 0.05},
      {"DL 3.1", "V100 by its profile, TFLOP/s", 1e-12 * v100.f16_flops_per_s, 125},
      {"DL 3.1", "V100 fp32, TFLOP/s", 1e-12 * v100.f32_flops_per_s, 15.7},
      {"DL 3.1", "V100 fp32 by rate and clock", 1e-12 * 80 * 2.0 * math_rates(70).fp32 * 1.53e9, 15.7, 0.05},
      {"DL 3.1", "V100 SMs", count(v100.device.sm_count), 80},
      {"DL 3.1", "V100 memory, GB/s", 1e-9 * v100.device.bandwidth_bytes_per_s, 900},
      {"DL 3.1", "V100 L2, MB", count(v100.device.l2_bytes >> 20), 6},
      {"DL 3.3", "V100 ops:byte from L2", v100.f16_flops_per_s / v100.cache_bandwidth_bytes_per_s, 40, 0.5},
      {"MM 2", "V100 ops:byte from memory", ratio("v100"), 138.9, 0.05},
      {"FC 3.2", "A100 80 GB ops:byte", ratio("a100"), 153, 0.5},
      {"", "H200 ops:byte", ratio("h200"), 206, 0.5},
      {"DL fig. 2", "Volta fp64", count(math_rates(70).fp64), 32},
      {"DL fig. 2", "Volta fp32", count(math_rates(70).fp32), 64},
      {"DL fig. 2", "Volta fp16", count(kVoltaRates.fp16), 128},
      {"DL fig. 2", "Volta int8", count(kVoltaRates.int8), 256},
      {"DL fig. 2", "Volta Tensor Cores fp16", count(math_rates(70).tensor_f16), 512},
      {"DL fig. 2", "Turing fp64", count(math_rates(75).fp64), 2},
      {"DL fig. 2", "Turing fp32", count(math_rates(75).fp32), 64},
      {"DL fig. 2", "Turing fp16", count(kTuringRates.fp16), 128},
      {"DL fig. 2", "Turing int8", count(kTuringRates.int8), 256},
      {"DL fig. 2", "Turing Tensor Cores fp16", count(math_rates(75).tensor_f16), 512},
      {"DL fig. 2", "Turing Tensor Cores int8", count(kTuringRates.tensor_int8), 1024},
      {"DL fig. 2", "Turing Tensor Cores int4", count(kTuringRates.tensor_int4), 2048},
      {"DL fig. 2", "Turing Tensor Cores int1", count(kTuringRates.tensor_int1), 8192},
      {"DL table 1", "linear 4096 <- 1024, batch 512", intensity_of(forward), 315, 0.5},
      {"DL table 1", "linear 4096 <- 1024, batch 1", intensity_of(gemm(4096, 1, 1024)), 0.9988, 5e-5},
      {"DL table 1", "3x3 max pooling, stride 1", pooling_intensity(3), 2.25},
      {"DL table 1", "ReLU", relu_intensity(), 0.25},
      {"DL 3.3", "one thread of 16,000 operations on 16 bytes", intensity({.flops = 16000, .bytes = 16}), 1000},
      {"FC 3.2", "4096 x 4096 is math-limited on a V100 from", crossover("v100"), 149, 0.5},
      {"FC 3.2", "4096 x 4096 is math-limited on an A100 from", crossover("a100"), 165, 0.5},
      {"", "4096 x 4096 is math-limited on an H200 from", crossover("h200"), 229, 0.5},

      // Layers as GEMMs.
      {"FC table 1", "forward M", count(forward.m), 4096},
      {"FC table 1", "forward N", count(forward.n), 512},
      {"FC table 1", "forward K", count(forward.k), 1024},
      {"FC table 1", "activation gradient M", count(dgrad.m), 1024},
      {"FC table 1", "activation gradient N", count(dgrad.n), 512},
      {"FC table 1", "activation gradient K", count(dgrad.k), 4096},
      {"FC table 1", "weight gradient M", count(wgrad.m), 1024},
      {"FC table 1", "weight gradient N", count(wgrad.n), 4096},
      {"FC table 1", "weight gradient K", count(wgrad.k), 512},

      // Alignment.
      {"MM 2.2", "elements, INT8, one byte each", count(least_row(1, 16)), 16},
      {"MM 2.2", "elements, FP16", count(least_row(size_of(DType::f16), 16)), 8},
      {"MM 2.2", "elements, TF32", count(least_row(size_of(DType::f32), 16)), 4},
      {"MM 2.2", "elements, FP64", count(least_row(size_of(DType::f64), 16)), 2},
      {"MM 2.2", "elements on an A100, INT8", count(least_row(1, kPitchBytes)), 128},
      {"MM 2.2", "elements on an A100, FP16", count(pitch_of(1, DType::f16, PitchPolicy::aligned)), 64},
      {"MM 2.2", "elements on an A100, TF32", count(pitch_of(1, DType::f32, PitchPolicy::aligned)), 32},
      {"MM 2.2", "elements on an A100, FP64", count(pitch_of(1, DType::f64, PitchPolicy::aligned)), 16},
      {"FC 4.2.1", "vocabulary 33708 padded", count(round_up(33708, 8)), 33712},
      {"FC 4.2.1", "bytes that rows of 33708 start on", count(gemm(33708, 5120, 1024).d_alignment), 8},
      {"FC 4.2.1", "bytes that rows of 33712 start on", count(gemm(33712, 5120, 1024).d_alignment), 32},
      {"FC 4.2.2", "4095 tokens leave forward's alignment alone", count(gemm(4096, 4095, 1024).b_alignment), 128},

      // Tiles.
      {"MM 2.3", "tiles of 64x64 for one of 256x128", count(waves(256, 128, 1, {.m = 64, .n = 64}).tiles), 8},
      {"MM fig. 6", "256 x 256 in 128x128", count(waves(256, 256, 1, k128x128).tiles), 4},
      {"MM fig. 6", "256 x 257 in 128x128", count(waves(256, 257, 1, k128x128).tiles), 6},
      {"MM fig. 6", "for so much more work", 257.0 / 256.0 - 1.0, 0.0039, 5e-5},
      {"MM 3.1", "27648 x 128: columns", count(waves(27648, 128, kA100).tiles_n), 1},
      {"MM 3.1", "27648 x 136: columns", count(waves(27648, 136, kA100).tiles_n), 2},
      {"MM 3.1", "27648 x 256: columns", count(waves(27648, 256, kA100).tiles_n), 2},
      {"MM 3.1", "useful part of the second column at 136", 2.0 * waves(27648, 136, kA100).useful_fraction - 1.0, 0.0625, 1e-9},
      {"DL 5.2.1", "20480 x 128: columns", count(waves(20480, 128, kV100).tiles_n), 1},
      {"DL 5.2.1", "20480 x 136: columns", count(waves(20480, 136, kV100).tiles_n), 2},
      {"DL 5.2.1", "20480 x 256: columns", count(waves(20480, 256, kV100).tiles_n), 2},

      // Waves.
      {"DL fig. 3", "12 blocks on 8 SMs: waves", std::ceil(tile_waves(12, 1, {.m = 1, .n = 1}, 8).waves), 2},
      {"DL fig. 3", "12 blocks on 8 SMs: the second", tile_waves(12, 1, {.m = 1, .n = 1}, 8).tail_utilization, 0.5},
      {"MM 3.2", "2304 x 1536: rows of tiles", count(waves(2304, 1536, kA100).tiles_m), 9},
      {"MM 3.2", "2304 x 1536: columns", count(waves(2304, 1536, kA100).tiles_n), 12},
      {"MM 3.2", "2304 x 1536: waves", waves(2304, 1536, kA100).waves, 1},
      {"MM 3.2", "2304 x 1537: tiles", count(waves(2304, 1537, kA100).tiles), 117},
      {"MM 3.2", "2304 x 1664: tiles", count(waves(2304, 1664, kA100).tiles), 117},
      {"MM 3.2", "2304 x 1664: tail", waves(2304, 1664, kA100).tail_utilization, 0.0833, 5e-5},
      {"MM 3.2", "past 3072", count(waves(2304, 3073, kA100).tail_tiles), 9},
      {"MM 3.2", "past 4608", count(waves(2304, 4609, kA100).tail_tiles), 9},
      {"MM 3.2", "past 6144", count(waves(2304, 6145, kA100).tail_tiles), 9},
      {"DL 5.2.2", "1280 x 2048: tiles", count(waves(1280, 2048, kV100).tiles), 80},
      {"DL 5.2.2", "1280 x 2176: tiles", count(waves(1280, 2176, kV100).tiles), 85},
      {"DL 5.2.2", "1280 x 2176: tail", waves(1280, 2176, kV100).tail_utilization, 0.0625},
      {"DL 5.2.2", "past 4096", count(waves(1280, 4097, kV100).tail_tiles), 5},
      {"DL 5.2.2", "past 6144", count(waves(1280, 6145, kV100).tail_tiles), 5},
      {"DL 5.2.2", "past 8192", count(waves(1280, 8193, kV100).tail_tiles), 5},
      {"MM fig. 5", "6912 x 2048: tiles", count(waves(6912, 2048, kA100).tiles), 432},
      {"MM fig. 5", "6912 x 2048: waves", waves(6912, 2048, kA100).waves, 4},
      {"DL fig. 8", "1280 x 2040: waves", waves(1280, 2040, kV100).waves, 1},
      {"FC 4.2.3", "4096 outputs: rows of tiles", count(waves(4096, 1, kV100).tiles_m), 16},
      {"FC 4.2.3", "wave-free batches every", count(wave_free_period(4096, k256x128, kV100)), 640},
      {"FC 4.2.3", "640: waves", waves(4096, 640, kV100).waves, 1},
      {"FC 4.2.3", "1280: waves", waves(4096, 1280, kV100).waves, 2},
      {"FC 4.2.3", "2560: waves", waves(4096, 2560, kV100).waves, 4},
      {"FC 4.2.3", "4096: tiles", count(waves(4096, 4096, kV100).tiles), 512},
      {"FC 4.2.3", "4096: waves", waves(4096, 4096, kV100).waves, 6.4, 1e-9},
      {"FC 4.2.3", "5120: waves", waves(4096, 5120, kV100).waves, 8},

      // The same on an H200.
      {"", "H200: wave-free batches every", count(wave_free_period(4096, k256x128, kH200)), 4224},
      {"", "H200: in 128x256 every", count(wave_free_period(4096, k128x256, kH200)), 8448},
      {"", "H200: 2048", waves(4096, 2048, kH200).wave_efficiency, 0.970, 5e-4},
      {"", "H200: 4096", waves(4096, 4096, kH200).wave_efficiency, 0.970, 5e-4},
      {"", "H200: 5120", waves(4096, 5120, kH200).wave_efficiency, 0.970, 5e-4},
      {"", "H200: 16384", waves(4096, 16384, kH200).wave_efficiency, 0.970, 5e-4},
      {"", "H200: 2560, tiles", count(h200_guide.tiles), 320},
      {"", "H200: 2560, waves", h200_guide.waves, 2.42, 5e-3},
      {"", "H200: 2560", h200_guide.wave_efficiency, 0.808, 5e-4},
      {"", "H200: 4096 -> 4224 is worth", 1.0 / waves(4096, 4096, kH200).wave_efficiency - 1.0, 0.031, 5e-4},
      {"", "H200: 4224 in 128x256, tiles", count(h200_wide.tiles), 544},
      {"", "H200: 4224 in 128x256, waves", h200_wide.waves, 4.12, 5e-3},
      {"", "H200: 4224 in 128x256", h200_wide.wave_efficiency, 0.82, 5e-3},

      // Convolutions.
      {"DL table 4", "forward M = NPQ", count(forward_of_20.m), 40 * 16 * 16},
      {"DL table 4", "forward N = K", count(forward_of_20.n), 256},
      {"DL table 4", "forward K = CRS", count(forward_of_20.k), 256 * 9},
      {"DL table 4", "activation gradient M = NHW", count(dgrad_of_20.m), 40 * 16 * 16},
      {"DL table 4", "activation gradient N = C", count(dgrad_of_20.n), 256},
      {"DL table 4", "activation gradient K = KRS", count(dgrad_of_20.k), 256 * 9},
      {"DL table 4", "weight gradient M = CRS", count(wgrad_of_20.m), 256 * 9},
      {"DL table 4", "weight gradient N = K", count(wgrad_of_20.n), 256},
      {"DL table 4", "weight gradient K = NPQ", count(wgrad_of_20.k), 40 * 16 * 16},
      {"DL 7.3", "a 3x3 filter over 128 channels",
       count(convolution({.count = 1, .channels = 128, .height = 8, .width = 8}, 8, same(3), "v100").dot_product()), 1152},
      {"DL fig. 20", "blocks of 128x128 an SM", count(guide_blocks_per_sm(k128x128)), 2},
      {"DL fig. 20", "blocks of 256x64 an SM", count(guide_blocks_per_sm({.m = 256, .n = 64})), 2},
      {"DL fig. 20", "N = 40: tiles", count(forward_of_20.tiles), 160},
      {"DL fig. 20", "N = 40: waves", forward_of_20.waves, 1},
      {"DL fig. 20", "N = 41: tiles", count(more[0].tiles), 164},
      {"DL fig. 20", "N = 41: tail", count(more[0].tail_tiles), 4},
      {"DL fig. 20", "N = 40 in 256x64: tiles", count(figure20(40, {.m = 256, .n = 64})[0].tiles), 160},
      {"DL fig. 20", "N = 41 in 256x64: tail", count(figure20(41, {.m = 256, .n = 64})[0].tail_tiles), 4},
      {"DL 7.3.2", "256x56x56x64 -> 128 channels", intensity({.flops = wide_forward.flops, .bytes = wide_forward.bytes}), 383.8, 0.05},
      {"DL 7.3.4.2", "C = 32 in a weight gradient's 64x64 tiles: useful",
       answer_in_tile(narrow, {.m = 64, .n = 64}, "v100")[2].useful_fraction, 0.5},
      {"DL 7.4.1", "a 3x3 filter dilated by 2", count(same(3, 1, 2).effective_height()), 5},
  };
}

TEST(Guide, EveryWorkedNumber) {
  for (const Number& number : numbers()) {
    EXPECT_NEAR(number.computed, number.printed, number.tolerance) << number.where << ": " << number.what;
  }
}

// MM 2.2: "a smaller power of two still helps". K a multiple of 8, 4, 2 and 1 elements of 2 bytes, in rows that follow one another.
TEST(Guide, ASmallerPowerOfTwoStillHelps) {
  for (const std::string_view key : {"v100", "t4", "b200"}) {
    double before = 0.0;
    for (const std::int64_t k : {1024, 1020, 1022, 1021}) {
      const GemmProblem problem = gemm(4096, 4096, k);
      const GemmPlan plan = choose(problem, device(key));
      const double seconds_a_flop = plan.predicted_s / static_cast<double>(problem.flops());
      EXPECT_GT(seconds_a_flop, 1.05 * before) << key << ", K = " << k;
      before = seconds_a_flop;
    }
  }
  // On a GPU with kernels of tilewave's own: theirs load as wide as the rows allow.
  const auto mma = [](std::int64_t k) {
    return choose(gemm(4096, 4096, k), device("a100"), {.forced = "tensor_core_pipelined"}).predicted_s;
  };
  EXPECT_LT(mma(1024), mma(1020));
  EXPECT_LT(mma(1020), mma(1022));
  EXPECT_LT(mma(1022), mma(1021));
}

constexpr std::string_view kTensorCoreGpus[] = {"v100", "t4", "a100", "l4", "h200", "b200"};

bool on_tensor_cores(const GemmProblem& problem, std::string_view key, AlignmentPolicy policy) {
  return kernel_of(Backend::cuda, choose(problem, device(key), {.alignment_policy = policy})).tensor_cores;
}

// The three GEMMs of a layer: forward, activation gradient, weight gradient.
std::vector<GemmProblem> phases(std::int64_t out, std::int64_t in, std::int64_t tokens, PitchPolicy pitch = PitchPolicy::packed,
                                Precision precision = Precision::fp16) {
  std::vector<GemmProblem> all;
  for (const GemmRole role : {GemmRole::forward, GemmRole::dgrad, GemmRole::wgrad}) {
    all.push_back(plain_gemm({.role = role, .out = out, .in = in, .tokens = tokens}, precision, pitch));
  }
  return all;
}

std::vector<bool> phases_on_tensor_cores(const std::vector<GemmProblem>& all, std::string_view key, AlignmentPolicy policy) {
  std::vector<bool> on;
  for (const GemmProblem& problem : all) on.push_back(on_tensor_cores(problem, key, policy));
  return on;
}

// A library's M x N x K, its matrices column by column: "N" has A along M and B along K, "T" the other way round; D lies along M.
GemmProblem library_gemm(std::string_view transposed, std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmProblem problem = gemm(m, n, k);
  problem.a_major = transposed[0] == 'N' ? Major::m : Major::k;
  problem.b_major = transposed[1] == 'N' ? Major::k : Major::n;
  problem.a_pitch = problem.a_major == Major::m ? m : k;
  problem.b_pitch = problem.b_major == Major::n ? n : k;
  problem.a_alignment = alignment_of(0, 2 * problem.a_pitch);
  problem.b_alignment = alignment_of(0, 2 * problem.b_pitch);
  return problem;
}

// FC 4.2, figures 7a and 8a, before cuBLAS 11: a vocabulary of 33708 takes all three phases off Tensor Cores, 4095 tokens the weight
// gradient alone. Neither pitch nor GPU changes that, and under "any" there is nothing of it.
TEST(Guide, StrictAlignmentIsCublasBefore11) {
  using Phases = std::vector<bool>;
  for (const std::string_view key : kTensorCoreGpus) {
    for (const PitchPolicy pitch : {PitchPolicy::packed, PitchPolicy::aligned}) {
      SCOPED_TRACE(concat(key, pitch == PitchPolicy::packed ? " packed" : " aligned"));
      const auto strict = [&](std::int64_t out, std::int64_t in, std::int64_t tokens) {
        return phases_on_tensor_cores(phases(out, in, tokens, pitch), key, AlignmentPolicy::strict);
      };
      const auto any = [&](std::int64_t out, std::int64_t in, std::int64_t tokens) {
        return phases_on_tensor_cores(phases(out, in, tokens, pitch), key, AlignmentPolicy::any);
      };
      EXPECT_EQ(strict(33708, 1024, 5120), (Phases{false, false, false})) << "figure 7a: D, K and B";
      EXPECT_EQ(strict(33712, 1024, 5120), (Phases{true, true, true})) << "figure 7a";
      EXPECT_EQ(strict(4096, 1024, 4095), (Phases{true, true, false})) << "figure 8a";
      EXPECT_EQ(strict(4096, 1024, 4096), (Phases{true, true, true})) << "figure 8a";
      EXPECT_EQ(strict(4096, 1020, 4096), (Phases{false, false, false})) << "K; A and D; A and D";
      EXPECT_EQ(any(33708, 1024, 5120), (Phases{true, true, true}));
      EXPECT_EQ(any(4096, 1024, 4095), (Phases{true, true, true}));
      EXPECT_EQ(any(4096, 1020, 4096), (Phases{true, true, true}));
      if (math_rates(device(key).capability).tensor_tf32 == 0) continue;
      const std::vector<GemmProblem> tf32 = phases(4096, 1024, 4096, pitch, Precision::tf32);
      EXPECT_EQ(phases_on_tensor_cores(tf32, key, AlignmentPolicy::any), (Phases{true, true, true}));
      EXPECT_EQ(phases_on_tensor_cores(tf32, key, AlignmentPolicy::strict), (Phases{false, false, false}));
    }
  }
}

// MM figure 2a steps through K with A and B as they come, DL figure 5 through M with B transposed: Tensor Cores at every eighth value.
TEST(Guide, StrictAlignmentInStepsOfOne) {
  for (const std::string_view key : {"v100", "a100", "h200"}) {
    for (std::int64_t step = 2041; step <= 2056; ++step) {
      const bool eighth = step % 8 == 0;
      EXPECT_EQ(on_tensor_cores(library_gemm("NN", 4096, 4096, step), key, AlignmentPolicy::strict), eighth) << key << ", K = " << step;
      EXPECT_EQ(on_tensor_cores(library_gemm("NT", step, 4096, 4096), key, AlignmentPolicy::strict), eighth) << key << ", M = " << step;
      EXPECT_TRUE(on_tensor_cores(library_gemm("NN", 4096, step, 4096), key, AlignmentPolicy::strict)) << key << ", N = " << step;
    }
  }
}

// The rule as libraries wrote it: M (D's rows, and A's where they lie along it), K, and N where B's rows lie along that.
TEST(Guide, StrictAlignmentAsksForEachMatrixsFastestDimensionAndK) {
  for (const std::string_view transposed : {"NN", "NT", "TN", "TT"}) {
    for (const Major d_major : {Major::m, Major::n}) {
      for (const std::int64_t m : {512, 513}) {
        for (const std::int64_t n : {512, 516}) {
          for (const std::int64_t k : {512, 510}) {
            GemmProblem problem = library_gemm(transposed, m, n, k);
            problem.d_major = d_major;
            const bool m_counts = transposed[0] == 'N' || d_major == Major::m, n_counts = transposed[1] == 'T' || d_major == Major::n;
            EXPECT_EQ(strictly_aligned(problem), k == 512 && (m == 512 || !m_counts) && (n == 512 || !n_counts))
                << transposed << name_of(d_major) << " " << m << " " << n << " " << k;
            GemmProblem beside = problem;  // what lies like D, or is one row, asks for nothing more
            beside.epilogue = {.bias = true, .saved_input = true, .residual = true, .bias_gradient = true, .accumulate = true};
            beside.output_dtype = DType::f32;
            EXPECT_EQ(strictly_aligned(beside), strictly_aligned(problem));
          }
        }
      }
    }
  }
  EXPECT_EQ(strict_multiple(DType::f16), 8);
  EXPECT_EQ(strict_multiple(DType::bf16), 8);
}

TEST(Guide, StrictAlignmentNamesTheDimension) {
  const auto refused = [](const GemmProblem& problem) {
    const GemmChoice choice = {.forced = "tensor_core_pipelined", .alignment_policy = AlignmentPolicy::strict};
    try {
      choose(problem, device("a100"), choice);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto ends = [](const std::string& text, const std::string& end) { return text.ends_with(end); };
  const std::string rule =
      "gemm.alignment_policy = \"strict\" keeps Tensor Cores to products whose K and whose matrices' fastest-varying dimensions are "
      "multiples of 8, unlike ";
  const std::string wgrad = refused(phases(4096, 1024, 4095)[2]), forward = refused(phases(33708, 1020, 5120)[0]);
  EXPECT_TRUE(ends(wgrad, rule + "K = 4095.")) << wgrad;
  EXPECT_TRUE(ends(forward, rule + "M = 33708, which D's rows run along; K = 1020, which A's and B's rows run along.")) << forward;
  EXPECT_EQ(refused(phases(4096, 1024, 4095)[0]), "");
}

// FC figure 8b, since cuBLAS 11: at 4095 tokens forward and activation gradient run as at 4096, the weight gradient still gains.
TEST(Guide, AWeightGradientGainsFromAMultipleOf8) {
  for (const std::string_view key : {"v100", "t4"}) {
    const std::vector<GemmProblem> odd = phases(4096, 1024, 4095), even = phases(4096, 1024, 4096);
    const auto gain = [&](std::size_t phase) {
      return choose(odd[phase], device(key)).predicted_s / choose(even[phase], device(key)).predicted_s;
    };
    EXPECT_NEAR(gain(0), 1.0, 0.001) << key;
    EXPECT_NEAR(gain(1), 1.0, 0.001) << key;
    EXPECT_GT(gain(2), 1.2) << key;
  }
}

// DL 3.3: memory or math by intensity, unless there is too little parallelism to speak of either.
TEST(Guide, WhatLimitsALaunch) {
  const DeviceInfo& v100 = device("v100");
  const auto limit = [&](const GemmProblem& problem) { return limit_of(problem, plan_guide_tile(problem, k256x128, v100, 1), v100); };
  EXPECT_EQ(limit(gemm(8192, 8192, 8192)), Limit::math);
  EXPECT_EQ(limit(gemm(20480, 128, 8192)), Limit::memory);
  for (const std::int64_t size : {1, 7, 64, 4096, 100000}) {
    for (const GemmProblem& vector : {gemm(size, 1, 4096), gemm(1, size, 4096)}) EXPECT_LT(intensity_of(vector), 1.0) << size;
  }
  EXPECT_LT(layer_norm_intensity(), 10.0);
  // 16,000 operations on 16 bytes. Of the 4 blocks per SM that hide its latency one thread is one, and takes as long as all of them.
  const double math_s = 16000.0 / peak_flops_per_s(v100, DType::f16, MathMode::ieee), memory_s = 16.0 / v100.bandwidth_bytes_per_s;
  const auto enough = static_cast<double>(4 * v100.sm_count);
  EXPECT_GT(math_s, memory_s);
  EXPECT_EQ(limit_of({.predicted_s = enough * math_s, .memory_s = memory_s, .math_s = math_s, .idle_sms = enough}), Limit::latency);
  EXPECT_EQ(limit_of({.predicted_s = math_s, .memory_s = memory_s, .math_s = math_s}), Limit::math);
}

}  // namespace
}  // namespace tilewave

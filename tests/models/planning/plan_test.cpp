// Plans of steps on every profile, the advice made of them, and properties of tiles and waves over random shapes.
#include "models/planning/plan.h"

#include <gtest/gtest.h>
#include <map>
#include <random>
#include <sstream>

#include "kernels/core/device_profiles.h"
#include "kernels/gemm/catalog.h"
#include "kernels/gemm/guide_tiles.h"
#include "models/planning/advice.h"
#include "models/planning/predicted_settings.h"
#include "models/planning/resolve.h"
#include "models/step/memory_check.h"
#include "tests/models/training/small_runs.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

// A profile's 16-bit type: Volta and Turing have no bf16.
Precision half_of(const DeviceInfo& device) { return device.capability < kMinCudaCapability ? Precision::fp16 : Precision::bf16; }

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  std::int64_t operator()(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }

 private:
  std::mt19937 random_;
};

TEST(Profiles, AreNamedWhateverTheCase) {
  EXPECT_EQ(&device_profile("H200"), &device_profile("h200"));
  EXPECT_EQ(device_profile("RTX4090").device.sm_count, 128);
  EXPECT_EQ(device_profiles().size(), 14u);
  for (const DeviceProfile& profile : device_profiles()) {
    EXPECT_FALSE(profile.source.empty()) << profile.key;
    EXPECT_EQ(profile.device.index, kNoDevice);
    EXPECT_GT(profile.device.link_bytes_per_s, 0.0) << profile.key;
    EXPECT_LT(profile.device.link_bytes_per_s, profile.device.bandwidth_bytes_per_s) << profile.key;
    EXPECT_GT(peak_flops_per_s(profile.device, DType::f16, MathMode::ieee), peak_flops_per_s(profile.device, DType::f32, MathMode::ieee));
    DeviceInfo here = profile.device;
    here.index = 0;
    EXPECT_EQ(find_profile(here), &profile) << "a probed GPU of that name";
  }
  EXPECT_EQ(math_rates(device_profile("a10").device).tensor_bf16, 512);
  EXPECT_EQ(device_profile("a100").device.link_bytes_per_s, 300e9) << "NVLink, one way";
  EXPECT_EQ(device_profile("l4").device.link_bytes_per_s, 32e9) << "PCIe, one way";
  EXPECT_EQ(math_rates(device_profile("l4").device).tensor_f16, 512);
  EXPECT_EQ(math_rates(device_profile("rtx4090").device).tensor_f16, 256);
  EXPECT_EQ(math_rates(device_profile("l40s").device).tensor_f16, 512);
  EXPECT_EQ(math_rates(device_profile("rtx3090").device).tensor_f16, 256);
  EXPECT_EQ(math_rates(device_profile("rtx5090").device).tensor_f16, 256);
  EXPECT_EQ(math_rates(device_profile("gh200").device).tensor_bf16, 2048);
  EXPECT_EQ(math_rates(device_profile("h200").device).tensor_bf16, 2048);
  try {
    device_profile("h300");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "there is no profile of a device called \"h300\"; there are v100, t4, a100, rtx3090, a10, l4, l40s, "
                 "rtx4090, h100-pcie, h100-sxm, gh200, h200, b200, rtx5090.");
  }
}

// What people call a GPU, and what it is taken for.
TEST(Profiles, ANameMayStandForOne) {
  EXPECT_EQ(&device_profile("H100"), &device_profile("h100-sxm"));
  EXPECT_EQ(profile_note("h100"), "h100 means h100-sxm, NVIDIA H100 80GB HBM3; the PCIe card is h100-pcie");
  for (const DeviceProfile& profile : device_profiles()) EXPECT_EQ(profile_note(profile.key), "") << profile.key;
}

// Fewer SMs have less to give, by their share.
TEST(Profiles, PeaksGrowWithTheSms) {
  for (const DeviceProfile& profile : device_profiles()) {
    DeviceInfo other = profile.device;
    const double peak = peak_flops_per_s(other, DType::f16, MathMode::ieee);
    for (const int sms : {profile.device.sm_count - 1, profile.device.sm_count + 1}) {
      other.sm_count = sms;
      EXPECT_NEAR(peak_flops_per_s(other, DType::f16, MathMode::ieee) / peak, static_cast<double>(sms) / profile.device.sm_count, 1e-12);
    }
  }
}

TEST(Profiles, TheSourceOfFiguresSaysWhatIsNoneOfIt) {
  DeviceInfo h200 = device_profile("h200").device;
  const std::string source(device_profile("h200").source);
  EXPECT_EQ(source_of_figures(h200), source);
  h200.index = 0;  // a GPU of that name that was probed
  h200.bandwidth_bytes_per_s = 4.81e12;
  EXPECT_EQ(source_of_figures(h200), source + "; the bandwidth is the driver's");
  h200.sm_count = 60;
  EXPECT_EQ(source_of_figures(h200),
            source + "; the bandwidth is the driver's; that is of 132 SMs: the peak is scaled to 60, all else is not");
  h200.name = "an unknown one";
  EXPECT_EQ(source_of_figures(h200), "");
}

// Where tilewave has kernels it plans with them; elsewhere with the guide's tiles, which can be planned and not run.
TEST(Profiles, RowsAreTilewavesOrTheGuides) {
  for (const DeviceProfile& profile : device_profiles()) {
    const GemmProblem problem = plain_gemm({.out = 4096, .in = 1024, .tokens = 5120}, half_of(profile.device), PitchPolicy::aligned);
    const GemmPlan plan = choose(problem, profile.device);
    const bool guides = profile.device.capability < 80 || profile.device.capability >= 100;
    EXPECT_EQ(name_of(plan.composition) == "guide_tensor_cores", guides) << profile.key << " " << name_of(plan.composition);
    const double share =
        static_cast<double>(problem.flops()) / plan.predicted_s / peak_flops_per_s(profile.device, problem.operand_dtype, problem.math);
    EXPECT_LE(share, 1.0) << profile.key;
    EXPECT_GE(share, 0.25) << profile.key;
    DeviceInfo here = profile.device;
    here.index = 0;
    if (guides) {
      EXPECT_THROW(choose(problem, here, {.forced = "guide_tensor_cores"}), InputError) << profile.key;
    }
  }
}

TEST(Plans, TilesAndWavesOfRandomShapes) {
  Draw draw(3);
  for (int i = 0; i < 3000; ++i) {
    const Tile tile{.m = draw(1, 300), .n = draw(1, 300)};
    const std::int64_t m = draw(1, 60000), n = draw(1, 60000), sms = draw(1, 200), blocks = draw(1, 8);
    const Tiling tiling = tile_waves(m, n, tile, sms * blocks);
    EXPECT_GE(tiling.tiles * tile.m * tile.n, m * n);
    EXPECT_GE(ceil_div(tiling.tiles, tiling.slots) * sms * blocks, tiling.tiles);
    EXPECT_GT(tiling.useful_fraction, 0.0);
    EXPECT_LE(tiling.useful_fraction, 1.0);
    EXPECT_GT(tiling.tail_utilization, 0.0);
    EXPECT_LE(tiling.tail_utilization, 1.0);
    EXPECT_GT(tiling.wave_efficiency, 0.0);
    EXPECT_LE(tiling.wave_efficiency, 1.0);
  }
}

TEST(Plans, RandomGemmsOnEveryProfile) {
  Draw draw(5);
  for (int i = 0; i < 40; ++i) {
    for (const DeviceProfile& profile : device_profiles()) {
      const LayerGemm layer{.role = static_cast<GemmRole>(draw(0, 2)), .out = draw(1, 9000), .in = draw(1, 9000), .tokens = draw(1, 9000)};
      const GemmProblem problem = plain_gemm(layer, half_of(profile.device), draw(0, 1) == 0 ? PitchPolicy::packed : PitchPolicy::aligned);
      EXPECT_EQ(problem.flops(), 2 * layer.out * layer.in * layer.tokens);
      const GemmPlan plan = choose(problem, profile.device);
      const PlanWaves waves = waves_of(plan);
      EXPECT_GE(plan.tiling.tiles * plan.tile.m * plan.tile.n, problem.m * problem.n);
      EXPECT_GE(std::ceil(waves.waves) * static_cast<double>(plan.tiling.slots),
                static_cast<double>(plan.streams_k ? plan.blocks : plan.items()));
      EXPECT_TRUE(waves.efficiency > 0.0 && waves.efficiency <= 1.0 && waves.tail_fraction > 0.0 && waves.tail_fraction <= 1.0);
      EXPECT_GT(plan.predicted_s, 0.0);
    }
  }
}

// 160 tiles on 132 SMs: a wave of whole ones, and 28 in 4 parts each, 112 of the next wave's 132 slots.
TEST(Plans, WavesOfWholeTilesAndOfParts) {
  GemmPlan plan{.split = 4, .whole_tiles = 132, .tiling = tile_waves(20 * 256, 8 * 128, {256, 128}, 132)};
  ASSERT_EQ(plan.tiling.tiles, 160);
  EXPECT_EQ(plan.items(), 244);
  const PlanWaves some = waves_of(plan);
  EXPECT_DOUBLE_EQ(some.waves, 244.0 / 132);
  EXPECT_DOUBLE_EQ(some.tail_fraction, 112.0 / 132);
  EXPECT_DOUBLE_EQ(some.efficiency, 160.0 / 132 / 1.25);
  plan.whole_tiles = 0;  // 640 parts, 4.85 waves
  const PlanWaves all = waves_of(plan);
  EXPECT_DOUBLE_EQ(all.waves, 640.0 / 132);
  EXPECT_DOUBLE_EQ(all.tail_fraction, 112.0 / 132);
  EXPECT_DOUBLE_EQ(all.efficiency, 640.0 / 132 / 5);
  plan.split = 1;
  EXPECT_DOUBLE_EQ(waves_of(plan).efficiency, plan.tiling.wave_efficiency);
}

TEST(Plans, FloorsAreThePeakOrTheBandwidth) {
  const DeviceInfo& h200 = device_profile("h200").device;
  const auto floor = [&](std::int64_t tokens) {
    const GemmProblem problem = plain_gemm({.out = 8192, .in = 8192, .tokens = tokens}, Precision::bf16, PitchPolicy::packed);
    return floor_s({.flops = problem.flops(), .bytes = problem.bytes()}, h200, DType::bf16, MathMode::ieee);
  };
  EXPECT_DOUBLE_EQ(floor(8192), 2.0 * 8192 * 8192 * 8192 / 989.4e12);
  EXPECT_DOUBLE_EQ(floor(1), 2.0 * (8192 * 8192 + 2 * 8192) / 4.8e12);
  EXPECT_EQ(floor_s({.flops = 1, .bytes = 1}, probe_cpu(1), DType::f32, MathMode::ieee), 0.0);
  const ResolvedRecipe resolved = resolve(small_recipe({"run.precision=bf16", "model.d_model=512", "model.d_ff=2048"}));
  const StepTrace trace = trace_step(resolved, h200);
  const double step = floor_s(trace.trace, precision_table(Precision::bf16), h200);
  double moved = 0.0;  // added up as the floors are, so that no rounding comes between
  for (const TraceEntry& entry : trace.trace.entries) moved += static_cast<double>(entry.cost.bytes) / 4.8e12;
  EXPECT_GE(step, moved);
  EXPECT_LT(step, plan_step(resolved, trace, h200).predicted_s());
}

TEST(Plans, AreTheTraceInLines) {
  const DeviceInfo& h200 = device_profile("h200").device;
  const ResolvedRecipe resolved = resolve(small_recipe({"run.precision=bf16", "batch.accumulate=5"}));
  const StepTrace trace = trace_step(resolved, h200);
  const StepPlan step = plan_step(resolved, trace, h200);
  std::int64_t gemms = 0, others = 0, flops = 0, bytes = 0, traced_flops = 0, traced_bytes = 0;
  double seconds = 0.0;
  for (const GemmLine& line : step.gemms) {
    gemms += line.count;
    flops += line.count * line.problem.flops();
    bytes += line.count * line.problem.bytes();
    seconds += line.predicted_s();
  }
  for (const OperationLine& line : step.operations) {
    others += line.count;
    flops += line.cost.flops;
    bytes += line.cost.bytes;
    EXPECT_GT(line.predicted_s, 0.0) << line.operation;
  }
  for (const TraceEntry& entry : trace.trace.entries) {
    traced_flops += entry.times * entry.cost.flops;
    traced_bytes += entry.times * entry.cost.bytes;
  }
  EXPECT_EQ(gemms + others, trace.trace.launches());
  EXPECT_EQ(flops, traced_flops);
  EXPECT_EQ(bytes, traced_bytes);
  EXPECT_DOUBLE_EQ(step.gemm_s, seconds);
  EXPECT_EQ(step.rows, 5 * (45 + 50));
  EXPECT_GT(step.seconds_of_layer("ffn.up"), 0.0);
  EXPECT_EQ(step.seconds_of_layer("fn.up"), 0.0);
  const auto up = std::find_if(step.gemms.begin(), step.gemms.end(), [](const GemmLine& line) { return line.layer == "decoder.*.ffn.up"; });
  ASSERT_NE(up, step.gemms.end());
  EXPECT_EQ(up->count, 2 * 5) << "two layers, five passes";
  EXPECT_EQ(plan_step(resolved, probe_cpu(1)).other_s, 0.0) << "a CPU's bandwidth is not known";
}

// A feature-major hidden activation turns an operand of some of the feed-forward layers' GEMMs round, one with a bias gradient too.
// Tokens aligned or not, every GEMM of the step stays on Tensor Cores.
TEST(Plans, FeatureMajorHiddenActivationsStayOnTensorCores) {
  for (const std::string_view key : {"a100", "rtx4090", "h100-sxm", "h200"}) {
    for (const std::string rows : {"4096", "4095"}) {
      const ResolvedRecipe resolved =
          resolve(small_recipe({"run.precision=bf16", "model.d_model=1024", "model.d_ff=4096", "guidelines.ffn_hidden_layout=feature_major",
                                "batch.source_tokens=" + rows, "batch.target_tokens=" + rows}));
      int feature_major = 0;
      for (const GemmLine& line : plan_step(resolved, device_profile(key).device).gemms) {
        EXPECT_TRUE(kernel_of(Backend::cuda, line.plan).tensor_cores)
            << key << " " << rows << " rows, " << line.layer << " " << name_of(line.problem.role) << ": " << name_of(line.plan);
        feature_major += line.problem.role == GemmRole::wgrad && line.problem.b_major == Major::k && line.problem.epilogue.bias_gradient;
      }
      EXPECT_GT(feature_major, 0);
    }
  }
}

// Steps that docs/results/guidelines-h200.md records, tilewave's and after calibration there: by the constants in the code the plan is
// within a tenth of them.
TEST(Plans, StepsMeasuredOnAnH200AreNear) {
  const DeviceInfo& h200 = device_profile("h200").device;
  Recipe recipe = small_recipe({"model.d_model=1024", "model.d_ff=4096", "model.heads=16", "model.encoder_layers=6",
                                "model.decoder_layers=6", "model.vocabulary=33712", "model.max_positions=64", "model.positions=learned",
                                "model.dropout=0", "model.attention_dropout=0", "batch.source_tokens=5120", "batch.target_tokens=5120",
                                "batch.sequence=64", "run.precision=bf16", "guidelines.row_pitch=packed"});
  for (const auto& [rows, measured_us] :
       std::map<std::int64_t, double>{{2048, 8001.0}, {2560, 9162.0}, {4096, 12592.0}, {4224, 13131.0}, {5120, 15156.0}}) {
    recipe.batch.source_tokens = recipe.batch.target_tokens = rows;
    EXPECT_NEAR(1e6 * plan_step(resolve(recipe), h200).predicted_s() / measured_us, 1.0, 0.1) << rows;
  }
}

// An ablation by prediction: gains a target row over each setting's own baseline; what cannot be planned says why.
TEST(Plans, SettingsArePredictedWithoutTheirDevice) {
  const DeviceInfo& h200 = device_profile("h200").device;
  const Recipe recipe = small_recipe({"run.precision=bf16", "model.vocabulary=30001", "guidelines.row_pitch=packed"});
  const auto all = predict_settings(recipe, settings_of(parse_switches("pad_vocabulary_to=1,8,0 gemm.engine=in_house,cublaslt")), h200);
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[0].gain, 0.0);
  EXPECT_GT(*all[2].gain, 0.0);
  EXPECT_EQ(all[2].shapes.vocabulary_padded, 30008);
  EXPECT_DOUBLE_EQ(1.0 + *all[2].gain, all[0].step.predicted_s() / all[2].step.predicted_s());
  EXPECT_EQ(all[3].refused, "a library's times are not predicted.");
  EXPECT_NE(all[4].refused.find("must be an integer from 1"), std::string::npos) << all[4].refused;
  const auto rows = predict_settings(recipe, settings_of(parse_switches("batch.target_tokens=50,100")), h200);
  EXPECT_DOUBLE_EQ(1.0 + *rows[1].gain, 2.0 * rows[0].step.predicted_s() / rows[1].step.predicted_s());
  const auto passes = predict_settings(recipe, settings_of(parse_switches("batch.accumulate=1,3")), h200);
  EXPECT_EQ(passes[1].target_rows, 3 * passes[0].target_rows);
  EXPECT_DOUBLE_EQ(1.0 + *passes[1].gain, 3.0 * passes[0].step.predicted_s() / passes[1].step.predicted_s());
  const auto without = predict_settings(recipe, settings_of(parse_switches("pad_vocabulary_to=0,8")), h200);
  EXPECT_TRUE(without[1].predicted() && !without[1].gain) << "its baseline has no prediction";
  // What fits and what does not, on a GPU of 16 GiB.
  const auto large = predict_settings(small_recipe({"run.precision=fp16"}), settings_of(parse_switches("batch.target_tokens=50,16000000")),
                                      device_profile("t4").device);
  EXPECT_TRUE(large[0].predicted());
  EXPECT_NE(large[1].refused.find("Tesla T4 has 14 GiB to give; --set batch.target_tokens="), std::string::npos) << large[1].refused;
}

// "--set a.b=1 --set c.d=2" as overrides.
std::vector<std::string> overrides_of(const std::string& set) {
  std::istringstream words(set);
  std::vector<std::string> overrides;
  for (std::string word; words >> word;) {
    if (word != "--set") overrides.push_back(word);
  }
  return overrides;
}

// What is advised is predicted to take less time per real token than what it replaces, and is what the recipe it names gives; also where
// the sides differ and a corpus decides how many rows hold tokens.
TEST(Plans, NoAdviceIsSlower) {
  Draw draw(11);
  int advised = 0, none = 0;
  const std::vector<DeviceInfo> devices = {device_profile("h200").device, device_profile("a100").device, device_profile("v100").device,
                                           probe_cpu(2)};
  for (int i = 0; i < 12; ++i) {
    const DeviceInfo& device = devices[static_cast<std::size_t>(i) % devices.size()];
    const std::int64_t heads = draw(1, 8), rows = draw(200, 6000), target_rows = i % 3 == 0 ? rows : draw(200, 6000);
    const Precision precision = device.backend == Backend::cpu ? Precision::fp32 : half_of(device);
    const Recipe recipe = small_recipe(
        {concat("model.d_model=", heads * draw(20, 128)), concat("model.heads=", heads), concat("model.d_ff=", draw(100, 4000)),
         concat("model.vocabulary=", draw(1000, 40000)), concat("batch.source_tokens=", rows), concat("batch.target_tokens=", target_rows),
         "model.max_positions=96", "batch.sequence=96", "data.tokenizer=bytes",
         concat("data.kind=", i % 2 == 0 ? "synthetic" : "number_names"), concat("run.precision=", name_of(precision)),
         concat("guidelines.row_pitch=", draw(0, 2) == 0 ? "aligned" : "packed")});
    RealTokenCounter tokens(recipe);
    const auto worth = [&](const Recipe& one) {
      const ResolvedRecipe resolved = resolve(one, {}, device, tokens);
      return StepWorth{.seconds = plan_step(resolved, device).predicted_s(), .tokens = tokens(resolved)};
    };
    const StepWorth before = worth(recipe);
    for (const Advice& advice : advise(recipe, device, tokens)) {
      if (!advice.advised) {
        EXPECT_LT(advice.step_gain, kMinGain) << advice.quantity;
        ++none;
        continue;
      }
      ++advised;
      EXPECT_NE(advice.to, advice.from) << advice.quantity;
      EXPECT_GE(advice.step_gain, kMinGain) << advice.quantity;
      const Recipe followed = parse_recipe({.source = "advised", .text = to_toml(recipe)}, overrides_of(advice.set));
      const StepWorth after = worth(followed);
      EXPECT_NEAR(relative_time(after, before), 1.0 - advice.step_gain, 1e-9) << advice.set;
      EXPECT_LT(after.seconds / after.tokens.target, before.seconds / before.tokens.target) << "as ablations count: " << advice.set;
      EXPECT_FALSE(advice.section.empty() || advice.set.empty());
    }
  }
  EXPECT_GT(advised, 0);
  EXPECT_GT(none, 0);
}

// The guide's step 1 on its own GPU: a vocabulary of 33708 in packed rows wants 33712, and one that is aligned wants nothing.
TEST(Plans, AdviseTheGuidesVocabulary) {
  const DeviceInfo& v100 = device_profile("v100").device;
  const auto advice = [&](std::int64_t vocabulary) {
    const Recipe recipe =
        small_recipe({"model.d_model=1024", "model.d_ff=4096", "model.heads=16", "batch.source_tokens=5120", "batch.target_tokens=5120",
                      "run.precision=fp16", "guidelines.row_pitch=packed", concat("model.vocabulary=", vocabulary)});
    return advise(recipe, v100);
  };
  const std::vector<Advice> odd = advice(33708);
  const auto up = std::find_if(odd.begin(), odd.end(), [](const Advice& one) { return one.quantity == "vocabulary" && one.to > one.from; });
  ASSERT_NE(up, odd.end());
  EXPECT_TRUE(up->advised);
  EXPECT_EQ(up->to, 33712);
  EXPECT_EQ(up->set, "--set guidelines.pad_vocabulary_to=8");
  EXPECT_GT(up->part_gain, 0.2);
  EXPECT_GT(up->cost_bytes, 0);
  EXPECT_EQ(up->cost_parameters, 0) << "padding is no parameter";
  EXPECT_EQ(advice(33712).front().quantity, "vocabulary");
  EXPECT_FALSE(advice(33712).front().advised);
}

bool advises_rows(const std::vector<Advice>& all, bool up) {
  return std::any_of(all.begin(), all.end(), [&](const Advice& one) {
    return one.quantity == "source and target rows" && one.advised && (one.to > one.from) == up;
  });
}

// What is advised can be set, gives what was promised, and fits.
TEST(Plans, AdviceOfRowsIsOfRowsThatAreMade) {
  const DeviceInfo& h200 = device_profile("h200").device;
  const auto recipe = [](std::vector<std::string> overrides) {
    std::vector<std::string> all = {"model.d_model=1024", "model.d_ff=4096",          "model.heads=16",
                                    "run.precision=bf16", "batch.source_tokens=4095", "batch.target_tokens=4095"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return small_recipe(all);
  };
  const Recipe rounded = recipe({"guidelines.batch_multiple_of=128"});
  int advised = 0;
  for (const Advice& advice : advise(rounded, h200)) {
    if (advice.quantity != "source and target rows") continue;
    EXPECT_EQ(advice.to % 128, 0) << advice.set;
    advised += advice.advised ? 1 : 0;
  }
  // Tiles and layers of waves that are not asked for are nobody's question, and rows are advised without them.
  EXPECT_NO_THROW(advise(recipe({"guidelines.wave_layer=nothing", "guidelines.wave_tile=16x16"}), h200));
  const Recipe plain = recipe({});
  RealTokenCounter tokens(plain);
  for (const Advice& advice : advise(plain, h200, tokens, WaveFreeBatch::nearest)) {
    if (advice.quantity != "source and target rows" || !advice.advised) continue;
    EXPECT_TRUE(advice.set.ends_with(" --set guidelines.wave_free_batch=off")) << advice.set;
    ++advised;
  }
  EXPECT_GT(advised, 0);
  // What waves moved is said too, since the recipe that it is set on says otherwise.
  const Recipe uneven = recipe({"batch.source_tokens=5000", "batch.target_tokens=3072"});
  RealTokenCounter uneven_tokens(uneven);
  for (const Advice& advice : advise(uneven, h200, uneven_tokens, WaveFreeBatch::nearest)) {
    if (!advice.quantity.ends_with(" rows") || advice.set.empty()) continue;
    EXPECT_NE(advice.set.find("batch.source_tokens="), std::string::npos) << advice.set;
    EXPECT_NE(advice.set.find("batch.target_tokens="), std::string::npos) << advice.set;
  }
  for (const Advice& advice :
       advise(recipe({"batch.source_tokens=2000", "batch.target_tokens=2000", "guidelines.batch_multiple_of=1024"}), h200)) {
    EXPECT_TRUE(advice.quantity != "source and target rows" || std::abs(advice.to - advice.from) <= advice.from / 8) << advice.to;
  }
  // Nor are ids of a token file beyond a smaller vocabulary.
  std::vector<std::string> of_file = kDecoderOnly;
  of_file.insert(of_file.end(), {"data.kind=tokens", "data.source=tokens.bin", "model.vocabulary=50257", "guidelines.row_pitch=packed",
                                 "run.precision=bf16"});
  for (const Advice& advice : advise(small_recipe(of_file), h200)) {
    EXPECT_TRUE(advice.quantity != "vocabulary" || advice.to >= advice.from) << advice.set;
  }

  DeviceInfo small = h200;
  ASSERT_TRUE(advises_rows(advise(plain, small), true));
  small.memory_bytes = plan_step(resolve(plain), small).bytes + reserved_bytes(Backend::cuda);
  EXPECT_FALSE(advises_rows(advise(plain, small), true)) << "more rows do not fit";
}

TEST(Plans, AShorterSequenceThatLosesPairsIsNotAdvised) {
  const Recipe recipe = small_recipe({"data.kind=number_names", "data.tokenizer=bytes", "model.vocabulary=260", "model.max_positions=96",
                                      "batch.sequence=72", "batch.source_tokens=2048", "batch.target_tokens=2048", "run.precision=bf16"});
  for (const Advice& advice : advise(recipe, device_profile("h200").device)) {
    EXPECT_TRUE(advice.quantity != "sequence" || advice.to >= advice.from) << advice.set;
  }
}

// Two sentences that set one key to two numbers cannot both be followed.
TEST(Advices, OfOneSidesRowsDoNotContradictTheOthers) {
  const Recipe recipe =
      read_recipe(test_environment().data / ".." / "recipes" / "multi30k.toml",
                  std::vector<std::string>{"data.kind=synthetic", "batch.source_tokens=3800", "batch.target_tokens=3700"});
  constexpr std::string_view kSource = "batch.source_tokens=", kTarget = "batch.target_tokens=";
  const auto sets = [](const Advice& advice, std::string_view key) { return advice.advised && advice.set.find(key) != std::string::npos; };
  int beside_each_other = 0;
  for (const DeviceProfile& profile : device_profiles()) {
    if (precision_instead(recipe.run.precision, profile.device)) continue;
    const std::vector<Advice> all = advise(recipe, profile.device);
    for (const Advice& source : all) {
      for (const Advice& target : all) {
        if (source.quantity != "source rows" || target.quantity != "target rows") continue;
        ++beside_each_other;
        for (const std::string_view key : {kSource, kTarget}) {
          EXPECT_FALSE(sets(source, key) && sets(target, key)) << profile.key << ": " << source.set << " and " << target.set;
        }
      }
    }
    for (const auto& side : {std::pair{"source rows", kSource}, std::pair{"target rows", kTarget}}) {
      const bool said = std::ranges::any_of(all, [&](const Advice& advice) { return advice.quantity == side.first; });
      const bool set =
          std::ranges::any_of(all, [&](const Advice& advice) { return advice.quantity != side.first && sets(advice, side.second); });
      EXPECT_TRUE(said || set) << profile.key << ": " << side.first << " are left out";
    }
  }
  EXPECT_GT(beside_each_other, 0);
}

// A Llama's 8/3 d_model against what its makers took: what alignment, tiles and waves are worth each, and what the plan says of both.
TEST(Advices, OfFeedForwardSayWhatEachEffectIsWorth) {
  const DeviceInfo& h200 = device_profile("h200").device;
  const auto recipe = [](std::int64_t d_ff, std::string_view pitch) {
    std::vector<std::string> overrides = kDecoderOnly;
    overrides.insert(overrides.end(),
                     {"model.d_model=4096", "model.heads=32", "model.activation=swiglu", "model.biases=none", "model.norm_kind=rms_norm",
                      "model.max_positions=4096", "model.vocabulary=32000", "run.precision=bf16", "batch.target_tokens=8192",
                      "batch.sequence=4096", concat("model.d_ff=", d_ff), concat("guidelines.row_pitch=", pitch)});
    return small_recipe(overrides);
  };
  const auto of_d_ff = [&](std::int64_t d_ff, std::string_view pitch) {
    std::vector<Advice> all = advise(recipe(d_ff, pitch), h200);
    std::erase_if(all, [](const Advice& one) { return one.quantity != "d_ff"; });
    return all;
  };
  for (const std::string_view pitch : {"packed", "aligned"}) {
    const std::vector<Advice> advice = of_d_ff(10922, pitch);
    ASSERT_FALSE(advice.empty());
    const std::vector<TriedSize>& tried = advice.front().tried;
    const auto size = [&](std::int64_t number) {
      const auto found = std::ranges::find(tried, number, &TriedSize::size);
      EXPECT_NE(found, tried.end()) << number;
      return found == tried.end() ? TriedSize() : *found;
    };
    EXPECT_TRUE(std::ranges::is_sorted(tried, {}, &TriedSize::size));
    for (const auto& [number, bytes] :
         {std::pair<std::int64_t, std::int64_t>{10922, 4}, {10920, 16}, {10928, 32}, {10944, 128}, {11008, 128}}) {
      EXPECT_EQ(size(number).effects.alignment_bytes, bytes) << number;
    }
    const TriedSize from = size(10922), to = size(11008);
    EXPECT_EQ(from.step_gain, 0.0);
    EXPECT_EQ(from.rate_gain, 0.0);
    if (pitch == "packed") {
      EXPECT_GT(from.effects.alignment_cost, 0.01);
    } else {
      EXPECT_EQ(from.effects.alignment_cost, 0.0) << "an aligned pitch starts every row on 128 bytes, whatever the width";
    }
    EXPECT_EQ(to.effects.alignment_cost, 0.0);
    for (const TriedSize& one : tried) {
      const StepPlan step = plan_step(resolve(recipe(one.size, pitch)), h200);
      EXPECT_NEAR(one.part_s, step.seconds_of_layer("ffn.up") + step.seconds_of_layer("ffn.down"), 1e-12);
      double useful = 0.0, waves = 0.0;
      for (const GemmLine& line : step.gemms) {
        if (line.layer.find(".ffn.") == std::string::npos) continue;
        useful += line.predicted_s() * line.plan.tiling.useful_fraction;
        waves += line.predicted_s() * (waves_of(line.plan).waves > 1.0 ? waves_of(line.plan).efficiency : 1.0);
      }
      EXPECT_NEAR(one.effects.useful_fraction, useful / one.part_s, 1e-9) << one.size;
      EXPECT_NEAR(one.effects.wave_fraction, waves / one.part_s, 1e-9) << one.size;
    }
    for (const Advice& one : advice) {
      EXPECT_EQ(one.tried.size(), tried.size());
      if (!one.advised) continue;
      EXPECT_EQ(size(one.to).step_gain, one.step_gain);
      EXPECT_GE(size(one.to).rate_gain, kMinGain);
    }
  }
  const auto advises = [](const std::vector<Advice>& all) { return std::ranges::any_of(all, &Advice::advised); };
  EXPECT_TRUE(advises(of_d_ff(10922, "packed")));
  EXPECT_FALSE(advises(of_d_ff(11008, "packed"))) << "a multiple of 256 needs no other";
  EXPECT_TRUE(advise(recipe(11008, "packed"), h200).front().tried.empty()) << "of the vocabulary nobody asked";
}

// More rows may be worth it for what they share, which no section of the guide speaks of.
TEST(Advices, OfRowsNameTheGuideWhereGemmsGain) {
  const auto section = [](const char* rows) {
    const Recipe recipe = read_recipe(
        test_environment().data / ".." / "recipes" / "ablate_waves.toml",
        std::vector<std::string>{concat("batch.source_tokens=", rows), concat("batch.target_tokens=", rows), "ablation.switches="});
    for (const Advice& advice : advise(recipe, device_profile("h200").device)) {
      if (advice.advised && advice.quantity == "source and target rows") return std::string(advice.section);
    }
    return std::string("no advice");
  };
  EXPECT_EQ(section("768"), "not in the guide: more rows share launches and the update");
  EXPECT_EQ(section("5120"), "Optimizing Linear/Fully-Connected Layers, 4.2.2 and 4.2.3");
}

// Less attention is no alignment: advice names the guide's section of alignment only where alignment changes.
TEST(Plans, AdviceNamesAlignmentWhereItChanges) {
  const DeviceInfo& h200 = device_profile("h200").device;
  // Of what is advised in that direction.
  const auto section = [](const std::vector<Advice>& all, std::string_view quantity, bool up) {
    const auto found = std::find_if(
        all.begin(), all.end(), [&](const Advice& one) { return one.quantity == quantity && one.advised && (one.to > one.from) == up; });
    return found == all.end() ? "none" : std::string(found->section);
  };
  const auto advice = [&](std::int64_t sequence, std::int64_t heads) {
    std::vector<std::string> overrides = kDecoderOnly;
    overrides.insert(overrides.end(), {"model.d_model=960", "model.d_ff=3840", concat("model.heads=", heads), "run.precision=bf16",
                                       "model.max_positions=1024", concat("batch.sequence=", sequence), "batch.target_tokens=16384"});
    return advise(small_recipe(overrides), h200);
  };
  const std::string alignment = "Matrix Multiplication Background, 2.2";
  const std::vector<Advice> aligned = advice(1024, 12);  // heads of 80 columns, multiples of 16 bytes
  EXPECT_EQ(section(aligned, "sequence", false), "not in the guide: a query sees fewer keys");
  EXPECT_EQ(section(aligned, "heads", true), "not in the guide: heads of 32, 64 and 128 columns run on Tensor Cores");
  EXPECT_EQ(section(aligned, "heads", false), "not in the guide: attention's own time, both widths aligned");
  EXPECT_EQ(section(advice(1024, 16), "heads", false), alignment);  // of 60 columns, multiples of 8 bytes
}

}  // namespace
}  // namespace tilewave

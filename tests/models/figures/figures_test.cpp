// The guides' worked numbers, as points of the figures that show them; every figure on every profile.
#include "models/figures/figures.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <set>
#include <string>

#include "kernels/core/device_profiles.h"
#include "kernels/core/error.h"
#include "kernels/gemm/catalog.h"
#include "models/figures/effects.h"
#include "models/figures/gemm_points.h"
#include "models/figures/run_figure.h"
#include "models/figures/sweep.h"
#include "models/figures/whole_waves.h"
#include "models/planning/gemm_answer.h"

namespace tilewave {
namespace {

FigureSetting setting_of(std::string_view profile, FigureSizes sizes = FigureSizes::scaled) {
  return {.device = device_profile(profile).device, .precision = Precision::fp16, .sizes = sizes};
}
FigureSetting printed_on(std::string_view profile) { return setting_of(profile, FigureSizes::printed); }

FigureRecords records_on(const FigureSetting& setting, const Figure& figure) {
  return run_figure({.figure = figure, .setting = setting}).records;
}

const FigureRecord& at(const FigureRecords& records, const PointName& name) {
  const FigureRecord* const found = find_record(records, name);
  TW_CHECK(found != nullptr, "there is no ", name.series, " at ", name.x, name.label);
  return *found;
}

std::string said_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

double effect_named(const std::vector<Effect>& effects, const std::string& what) {
  const auto found = std::ranges::find(effects, what, &Effect::what);
  TW_CHECK(found != effects.end(), "no effect is called ", what);
  return found->predicted;
}

TEST(Figures, OneWaveAndATailOnAnA100) {
  const FigureRecords records = records_on(printed_on("a100"), kWaveQuantizationFigure);
  const auto held = [&](double n) -> const FigureRecord& { return at(records, {.series = "256x128 held", .x = n}); };
  EXPECT_EQ(held(1536).m, 2304);
  EXPECT_EQ(held(1536).k, 4096);
  EXPECT_EQ(held(1536).tiles, 9 * 12);
  EXPECT_EQ(held(1536).tail_tiles, 0);
  for (double n = 1544; n <= 1664; n += 8) {
    EXPECT_EQ(held(n).tiles, 9 * 13) << n;
    EXPECT_EQ(held(n).tail_tiles, 9) << n;
    EXPECT_NEAR(held(n).tail_fraction, 0.0833, 5e-5) << n;
    EXPECT_EQ(held(n).split, 1) << n;
  }
  for (const double n : {1536.0, 3072.0, 4608.0, 6144.0}) {
    EXPECT_EQ(std::fmod(held(n).waves, 1.0), 0.0) << n;
    EXPECT_GT(held(n + 8).predicted_s, 1.1 * held(n).predicted_s) << "one wave more from " << n;
  }
  EXPECT_LT(held(1536).predicted_s, 1.01 * held(1416).predicted_s) << "time stands still within a column of tiles";
  const std::vector<Effect> effects = kWaveQuantizationFigure.effects(records);
  EXPECT_EQ(effect_named(effects, "tiles at N = 1536"), 108);
  EXPECT_EQ(effect_named(effects, "tiles at N = 1544"), 117);
  EXPECT_GT(effect_named(effects, "time at N = 1544 over that at 1536, where the first wave is full, 256x128 held"), 1.5);
}

TEST(Figures, OneWaveAndATailOnAV100) {
  const FigureRecords records = records_on(printed_on("v100"), kWaveQuantizationFigure);
  const auto held = [&](double n) -> const FigureRecord& { return at(records, {.series = "256x128 held", .x = n}); };
  EXPECT_EQ(held(2048).m, 1280);
  EXPECT_EQ(held(2048).tiles, 80);
  for (double n = 2056; n <= 2176; n += 8) {
    EXPECT_EQ(held(n).tiles, 85) << n;
    EXPECT_DOUBLE_EQ(held(n).tail_fraction, 0.0625) << n;
  }
  for (const double n : {4096.0, 6144.0, 8192.0}) EXPECT_EQ(held(n).tail_tiles, 0) << n;
}

TEST(Figures, OneWaveOnAnH200IsElevenColumnsOfTwelveTiles) {
  const FigureRecords records = records_on(setting_of("h200"), kWaveQuantizationFigure);
  const auto held = [&](double n) -> const FigureRecord& { return at(records, {.series = "256x128 held", .x = n}); };
  EXPECT_EQ(held(1408).m, 3072);
  EXPECT_EQ(held(1408).tiles, 132);
  EXPECT_EQ(held(1416).tiles, 144);
  EXPECT_NEAR(held(1416).tail_fraction, 12.0 / 132, 1e-12);
  EXPECT_GT(records.back().x, 4 * 1408) << "past four waves";
  // Streaming K has no such step.
  const auto streamed = [&](double n) { return at(records, {.series = "stream-K", .x = n}).predicted_s; };
  EXPECT_GT(held(1416).predicted_s / held(1408).predicted_s, 1.5);
  EXPECT_LT(streamed(1416) / streamed(1408), 1.25);
}

TEST(Figures, ColumnsOfTilesAndTheirPadding) {
  const FigureRecords ampere = records_on(printed_on("a100"), kTileQuantizationFigure);
  const auto held = [](const FigureRecords& records, double n) -> const FigureRecord& {
    return at(records, {.series = "256x128 held", .x = n});
  };
  EXPECT_EQ(held(ampere, 128).m, 27648);
  EXPECT_EQ(held(ampere, 128).tiles, 108);
  for (double n = 136; n <= 256; n += 8) EXPECT_EQ(held(ampere, n).tiles, 216) << n;
  EXPECT_DOUBLE_EQ(held(ampere, 136).useful_fraction, 136.0 / 256);
  EXPECT_DOUBLE_EQ(effect_named(kTileQuantizationFigure.effects(ampere), "of the last column at N = 136 useful"), 0.0625);
  const FigureRecords volta = records_on(printed_on("v100"), kTileQuantizationFigure);
  EXPECT_EQ(held(volta, 128).m, 20480);
  EXPECT_EQ(held(volta, 128).tiles, 80);
  for (double n = 136; n <= 256; n += 8) EXPECT_EQ(held(volta, n).tiles, 160) << n;
  EXPECT_LT(effect_named(kTileQuantizationFigure.effects(volta), "FLOP/s at N = 136 over those at 128, held"), 0.6) << "nearly half";
  EXPECT_EQ(records_on(setting_of("h200"), kTileQuantizationFigure).front().m, 256 * 132);
}

TEST(Figures, LargerTilesAreFewer) {
  const FigureRecords ampere = records_on(printed_on("a100"), kTilesFigure), volta = records_on(printed_on("v100"), kTilesFigure);
  const FigureRecord &large = at(ampere, {.series = "6912x2048x4096", .label = "256x128"}),
                     &small = at(ampere, {.series = "6912x2048x4096", .label = "64x64"});
  EXPECT_EQ(large.tiles, 432);
  EXPECT_DOUBLE_EQ(large.waves, 4.0);
  EXPECT_EQ(small.tiles, 8 * large.tiles);
  EXPECT_GT(small.predicted_s, large.predicted_s);
  EXPECT_EQ(at(volta, {.series = "1280x2040x4096", .label = "256x128"}).tiles, 80);
  EXPECT_DOUBLE_EQ(at(volta, {.series = "1280x2040x4096", .label = "256x128"}).waves, 1.0);
}

TEST(Figures, TheBatchBeyondWhichMathLimits) {
  const FigureRecords records = records_on(setting_of("h200"), kIntensityFigure);
  const std::vector<Effect> effects = kIntensityFigure.effects(records);
  const auto batch_of = [&](const std::string& key) { return effect_named(effects, "batch beyond which " + key + " is limited by math"); };
  EXPECT_EQ(batch_of("v100"), 149);
  EXPECT_EQ(batch_of("a100"), 165);
  EXPECT_EQ(batch_of("h200"), 229);
  EXPECT_LT(at(records, {.series = "all three phases", .x = 128}).flops_per_byte(), 138.9);
  EXPECT_EQ(kIntensityFigure.points(setting_of("h200")).levels.size(), device_profiles().size());
}

TEST(Figures, PhasesAreTheGuidesTable) {
  const FigureRecords records = records_on(setting_of("a100"), kBatchFigure);
  const auto shape = [&](const char* phase) {
    const FigureRecord& one = at(records, {.series = phase, .x = 2048});
    return std::vector{one.m, one.n, one.k};
  };
  EXPECT_EQ(shape("forward"), (std::vector<std::int64_t>{1024, 2048, 4096}));
  EXPECT_EQ(shape("dgrad"), (std::vector<std::int64_t>{4096, 2048, 1024}));
  EXPECT_EQ(shape("wgrad"), (std::vector<std::int64_t>{4096, 1024, 2048}));
}

bool on_cuda_cores(const FigureRecord& record) { return !find_gemm_kernel(Backend::cuda, record.kernel)->tensor_cores; }

TEST(Figures, StrictAlignmentIsTheGuidesOldLibrary) {
  for (const char* profile : {"v100", "a100", "h200"}) {
    const FigureRecords vocabulary = records_on(setting_of(profile), kVocabularyFigure);
    const FigureRecords batch = records_on(setting_of(profile), kBatchOf8Figure);
    for (const char* phase : {"forward", "dgrad", "wgrad"}) {
      const auto of = [&](const FigureRecords& records, const char* label, const char* group) {
        return on_cuda_cores(at(records, {.series = phase, .label = label, .group = group}));
      };
      EXPECT_TRUE(of(vocabulary, "33708", "strict")) << profile << phase;
      EXPECT_FALSE(of(vocabulary, "33712", "strict")) << profile << phase;
      EXPECT_FALSE(of(vocabulary, "33708", "any")) << profile << phase;
      // Figure 8a: the weight gradient alone falls back.
      EXPECT_EQ(of(batch, "4095", "strict"), std::string_view(phase) == "wgrad") << profile << phase;
      EXPECT_FALSE(of(batch, "4096", "strict")) << profile << phase;
    }
  }
}

TEST(Figures, WaveFreeBatchesAreTheGuidesAndThisDevices) {
  const FigureRecords volta = records_on(printed_on("v100"), kWaveFreeFigure);
  const auto waves = [&](const char* batch) { return at(volta, {.series = "forward", .label = batch, .group = "any"}).waves; };
  EXPECT_DOUBLE_EQ(waves("2560"), 4.0);
  EXPECT_DOUBLE_EQ(waves("4096"), 6.4);
  EXPECT_DOUBLE_EQ(waves("5120"), 8.0);
  EXPECT_GT(effect_named(kWaveFreeFigure.effects(volta), "FLOP/s at 2560 over those at 4096, forward, any"), 1.0);
  const FigureRecords hopper = records_on(setting_of("h200"), kWaveFreeFigure);
  EXPECT_NE(find_record(hopper, {.series = "forward", .label = "4224", .group = "any"}), nullptr);
  EXPECT_NE(find_record(hopper, {.series = "forward", .label = "8448", .group = "any"}), nullptr);
  EXPECT_EQ(find_record(records_on(printed_on("h200"), kWaveFreeFigure), {.series = "forward", .label = "4224", .group = "any"}), nullptr);
}

TEST(Figures, AlignmentIsOfTheFastestVaryingDimension) {
  const FigureRecords along_k = records_on(setting_of("h200"), kAlignmentKFigure),
                      along_m = records_on(setting_of("h200"), kAlignmentMFigure);
  const FigureRecord& k = at(along_k, {.series = "any alignment", .x = 4097});
  EXPECT_EQ(k.layout, "NN");  // K is the fastest-varying dimension of B alone
  EXPECT_EQ(k.a_alignment, 128);
  EXPECT_EQ(k.b_alignment, 2);
  EXPECT_EQ(k.d_alignment, 128);
  const FigureRecord& m = at(along_m, {.series = "any alignment", .x = 4100});
  EXPECT_EQ(m.layout, "NT");  // M is that of A and D
  EXPECT_EQ(m.a_alignment, 8);
  EXPECT_EQ(m.b_alignment, 128);
  EXPECT_EQ(m.d_alignment, 8);
  for (double x = 4080; x <= 4112; x += 1) {
    EXPECT_EQ(on_cuda_cores(at(along_k, {.series = "strict alignment", .x = x})), std::fmod(x, 8.0) != 0.0) << x;
  }
}

TEST(Figures, LayoutsAreBlass) {
  const auto majors = [](BlasLayout layout) {
    const GemmProblem p = blas_gemm({.layout = layout, .m = 24, .n = 40, .k = 56}, Precision::bf16, PitchPolicy::packed);
    EXPECT_EQ((std::vector{p.m, p.n, p.k}), (std::vector<std::int64_t>{24, 40, 56}));
    EXPECT_EQ(layout_of(p.role), layout);
    EXPECT_EQ(p.d_major, Major::m);
    return std::pair(p.a_major, p.b_major);
  };
  EXPECT_EQ(majors(BlasLayout::tn), std::pair(Major::k, Major::k));
  EXPECT_EQ(majors(BlasLayout::nn), std::pair(Major::m, Major::k));
  EXPECT_EQ(majors(BlasLayout::nt), std::pair(Major::m, Major::n));
}

TEST(Figures, WaveShapesAreTheGuidesWhereItHasSome) {
  const auto is = [](std::int64_t slots, std::int64_t down, std::int64_t across) {
    const WaveShape shape = wave_shape(slots);
    return shape.down == down && shape.across == across;
  };
  EXPECT_TRUE(is(108, 9, 12));
  EXPECT_TRUE(is(80, 5, 16));
  EXPECT_TRUE(is(132, 12, 11));
  EXPECT_TRUE(is(148, 4, 37));
  EXPECT_TRUE(is(1, 1, 1));
  for (const std::int64_t slots : {1, 2, 7, 40, 114, 264}) {
    EXPECT_EQ(wave_shape(slots).down * wave_shape(slots).across, slots);
    const Output output = whole_waves({.m = 256, .n = 128}, slots, 3);
    EXPECT_EQ(tile_waves(output.m, output.n, {.m = 256, .n = 128}, slots).waves, 3.0) << slots;
  }
  EXPECT_EQ(columns_of_whole_waves(132, 16), 33);
  EXPECT_EQ(columns_of_whole_waves(80, 16), 5);
}

TEST(Figures, EachIsDrawnForEveryProfileOrSaysWhyNot) {
  std::set<std::string_view> names;
  for (const Figure* figure : figures()) {
    EXPECT_TRUE(names.insert(figure->name).second) << figure->name << " is there twice";
    EXPECT_FALSE(figure->references.empty() || figure->shows.empty()) << figure->name;
    if (!figure->absent.empty()) continue;
    EXPECT_FALSE(figure->claim.empty()) << figure->name;
    EXPECT_TRUE(figure->points || figure->diagrams || figure == &kSummaryFigure) << figure->name;
    if (!figure->points) continue;
    for (const DeviceProfile& profile : device_profiles()) {
      for (const FigureSizes sizes : {FigureSizes::scaled, FigureSizes::printed}) {
        const FigureSetting setting = {.device = profile.device, .precision = Precision::fp16, .sizes = sizes};
        const FigureRun run = run_figure({.figure = *figure, .setting = setting});
        ASSERT_FALSE(run.records.empty()) << figure->name << " for " << profile.key;
        EXPECT_FALSE(run.asked.how.empty()) << figure->name;
        for (const FigureRecord& record : run.records) {
          EXPECT_EQ(record.refused, "") << figure->name << " for " << profile.key << ", " << record.series << " at " << record.x;
          if (figure->runs) {
            EXPECT_GT(record.predicted_s, 0.0) << figure->name << " for " << profile.key << ", " << record.series << " at " << record.x;
          }
        }
        EXPECT_FALSE(figure->effects(run.records).empty()) << figure->name << " for " << profile.key;
      }
    }
  }
  for (const char* name : {"alignment_k", "summary", "diagrams", "gemv", "pooling", "convolution_waves"}) EXPECT_TRUE(names.contains(name));
}

TEST(Figures, ANameNearlyRightIsSuggestedAndAnAbsentOneExplained) {
  EXPECT_EQ(&figure_named("wave_free"), &kWaveFreeFigure);
  EXPECT_NE(said_by([] { figure_named("wave_quantisation"); }).find("did you mean wave_quantization?"), std::string::npos);
  EXPECT_EQ(said_by([] { figure_named("xyzzy"); }).find("did you mean"), std::string::npos);
  EXPECT_NE(said_by([] { figure_named("convolution_layout"); }).find("not here yet: convolution takes NHWC alone"), std::string::npos);
}

// In one pass x is read and y written, in several x is read twice; backward x, dy and dx.
TEST(Figures, SeveralPassesReadAgain) {
  const FigureRecords records = records_on(setting_of("h200"), kNormalizationFigure);
  const std::vector<Effect> effects = kNormalizationFigure.effects(records);
  for (const char* layout : {"NHWC", "NCHW"}) {
    const auto ratio = [&](const char* pass) {
      return effect_named(effects, concat("time in several passes over that in one, 4194304 elements, batch, ", layout, ", ", pass));
    };
    EXPECT_NEAR(ratio("forward"), 1.5, 0.45) << "and two launches more";
    EXPECT_NEAR(ratio("backward"), 5.0 / 3.0, 0.35);
  }
  EXPECT_EQ(at(records, {.series = "batch, NHWC, several", .x = 65536.0 * 1024, .group = "forward"}).bytes,
            at(records, {.series = "batch, NHWC", .x = 65536.0 * 1024, .group = "forward"}).bytes + 65536 * 1024 * 2);
}

TEST(Figures, PoolingAsTheGuidesTableCountsIt) {
  const FigureRecords records = records_on(setting_of("v100"), kPoolingFigure);
  for (const char* series : {"max, NHWC", "max, NCHW", "average, NHWC", "average, NCHW"}) {
    EXPECT_DOUBLE_EQ(at(records, {.series = series, .x = 65536.0 * 1024, .group = "forward"}).flops_per_byte(), 2.25) << series;
  }
}

TEST(Figures, ToysKeepTheirDistanceFromAMultipleOf8) {
  FigureSetting toy = setting_of("h200");
  EXPECT_EQ(toy.sized(4095), 4095);
  toy.device = {.backend = Backend::cpu, .name = "a CPU", .sm_count = 2};
  EXPECT_EQ(toy.sized(4096), 256);
  EXPECT_EQ(toy.sized(4095), 255);
  EXPECT_EQ(toy.sized(33712), 2112);
  EXPECT_EQ(toy.sized(33708), 2108);
  EXPECT_EQ(toy.sized(8), 8);
  toy.sizes = FigureSizes::printed;
  EXPECT_EQ(toy.sized(4095), 4095);
}

TEST(Figures, ASweepOfNoPointsIsRefused) {
  const FigureSetting setting = setting_of("h200");
  const Figure none = sweep_figure({.text = "none", .axis = "N", .phases = {GemmRole::forward}});
  EXPECT_NE(said_by([&] { run_figure({.figure = none, .setting = setting}); }).find("a sweep of no points"), std::string::npos);
}

}  // namespace
}  // namespace tilewave

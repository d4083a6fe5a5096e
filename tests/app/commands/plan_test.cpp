// tilewave plan at a prompt: the guide's exercises, recipes for GPUs that are not here, and what it refuses.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class PlanCommand : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
  }
  // Its prose in lines as long as they come.
  static Outcome plan(const std::string& options) {
    const char* const wide = options.find("--json") == std::string::npos ? " --wide" : "";
    return shell(quoted(fs::absolute(test_environment().program).string()) + " plan " + options + wide, "/");
  }
  static std::vector<json> objects(const std::string& options) {
    const Outcome outcome = plan(options + " --json");
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    std::vector<json> all;
    std::istringstream lines(outcome.output);
    for (std::string line; std::getline(lines, line);) {
      const json object = json::parse(line, nullptr, false);
      EXPECT_TRUE(object.is_object()) << outcome.output;
      all.push_back(object);
    }
    return all;
  }
  static std::vector<json> gemms_of(const std::string& options) {
    std::vector<json> all = objects(options);
    std::erase_if(all, [](const json& object) { return object.at("kind") != "gemm"; });
    return all;
  }
  static std::string recipe(const std::string& name) {
    return quoted((fs::absolute(test_environment().data).lexically_normal() / ".." / "recipes" / name).string());
  }
};

TEST_F(PlanCommand, TheGuidesExercises) {
  // Figure 3: 12 blocks on 8 SMs, the second wave half full.
  const json figure3 = objects("--gemm 384x512x1024 --sm 8 --tile 128x128 --blocks-per-sm 1").at(0);
  EXPECT_EQ(figure3.at("tiles"), 12);
  EXPECT_DOUBLE_EQ(figure3.at("waves"), 1.5);
  EXPECT_DOUBLE_EQ(figure3.at("tail_fraction"), 0.5);
  EXPECT_EQ(figure3.at("blocks_per_sm"), 1);
  // Section 3.2 on an A100, and figure 20's two blocks per SM.
  const json a100 = objects("--gemm 2304x1664x4096 --for A100 --tile 256x128").at(0);
  EXPECT_EQ(a100.at("tiles"), 117);
  EXPECT_NEAR(a100.at("tail_fraction"), 0.0833, 5e-5);
  const json figure20 = objects("--gemm 10496x256x2304 --for v100 --tile 128x128").at(0);
  EXPECT_EQ(figure20.at("tiles"), 164);
  EXPECT_NEAR(figure20.at("waves"), 164.0 / 160.0, 1e-12);
  // Section 2: memory-limited, by a little.
  const json limited = objects("--gemm 8192x128x8192 --for V100 --tile 256x64").at(0);
  EXPECT_NEAR(limited.at("flops_per_byte"), 124.1, 0.05);
  EXPECT_NEAR(limited.at("ops_per_byte"), 138.9, 0.05);
  EXPECT_EQ(objects("--gemm 8192x128x8192 --for V100").at(0).at("limit"), "memory");
  EXPECT_EQ(objects("--gemm 8192x8192x8192 --for V100").at(0).at("limit"), "math");
}

// The time that bytes and FLOPs ask for stands beside the predicted one, and what makes the latter is named.
TEST_F(PlanCommand, LeastTimesAndLimits) {
  const json small = objects("--gemm 64x64x64 --for h200").at(0);
  EXPECT_NEAR(small.at("least_us"), 1e6 * 2 * 3 * 64 * 64 / 4.8e12, 1e-9);
  EXPECT_GT(small.at("predicted_us"), 100.0 * small.at("least_us").get<double>());
  EXPECT_EQ(small.at("limit"), "launch") << "not memory, whose time is a hundredth of it";
  EXPECT_NEAR(objects("--gemm 8192x8192x8192 --for h200").at(0).at("least_us"), 1e6 * 2.0 * 8192 * 8192 * 8192 / 989.4e12, 1e-6);
  const Outcome table = plan("--gemm 8192x128x8192 --for h200");
  for (const char* part : {"roofline", "predicted", "memory", " 28.84 us"})
    EXPECT_NE(table.output.find(part), std::string::npos) << table.output;
  for (const json& object : objects(recipe("gpt2_124m.toml") + " --for a100")) {
    if (object.at("kind") != "gemm") continue;
    EXPECT_LT(object.at("least_us"), object.at("predicted_us"));
    EXPECT_EQ(object.at("limit"), "math") << object.at("layer");
  }
  const json cpu = objects("--gemm 64x64x64 --device cpu").at(0);
  EXPECT_TRUE(cpu.at("least_us").is_null());
  EXPECT_EQ(cpu.at("limit"), "");
}

// Where nobody says how many blocks of a tile an SM has, the number and whose it is are printed, once for all three GEMMs of a layer.
TEST_F(PlanCommand, BlocksOfATileAndWhoseNumberItIs) {
  struct {
    std::string options;
    int blocks;
    std::string source;
  } const cases[] = {
      {"256x128", 1, "with 1 CTA of it per SM at a time, the guide's (Matrix Multiplication Background, figure 5)"},
      {"128x128", 2, "with 2 CTAs of it per SM at a time, the guide's (Deep Learning Performance, figure 20)"},
      {"256x64", 2, "with 2 CTAs of it per SM at a time, the guide's (Deep Learning Performance, figure 20)"},
      {"128x64", 4, "with 4 CTAs of it per SM at a time, tilewave's assumption: as many as hold the sums of one 256x128 tile"},
      {"64x64", 8, "with 8 CTAs of it per SM at a time, tilewave's assumption: as many as hold the sums of one 256x128 tile"},
      {"96x96", 1, "with 1 CTA of it per SM at a time, an assumption: the tile is none of the guide's"},
      {"64x64 --blocks-per-sm 3", 3, "with 3 CTAs of it per SM at a time, as --blocks-per-sm says"},
  };
  for (const auto& one : cases) {
    const std::string options = "--layer '4096<-1024@2560' --for v100 --tile " + one.options;
    for (const json& gemm : gemms_of(options)) {
      EXPECT_EQ(gemm.at("blocks_per_sm"), one.blocks) << one.options;
      const std::string reason = gemm.at("reason");
      EXPECT_TRUE(reason.ends_with(one.source)) << reason;
    }
    const std::string table = plan(options).output;
    const std::size_t first = table.find(one.source);
    EXPECT_NE(first, std::string::npos) << table;
    EXPECT_EQ(table.find(one.source, first + 1), std::string::npos) << table;
  }
}

// Figures that an option or a driver replaced do not stand under the source of the others.
TEST_F(PlanCommand, TheSourceOfFiguresSaysWhatIsNoneOfIt) {
  const std::string guides = "Deep Learning Performance guide, section 3";
  EXPECT_NE(plan("--gemm 512x512x512 --for v100").output.find("FLOP/B (" + guides + ")\n"), std::string::npos);
  const Outcome more = plan("--gemm 512x512x512 --for v100 --sm 132");
  EXPECT_NE(more.output.find("(132 SMs): 206.2 TFLOP/s"), std::string::npos) << more.output;
  EXPECT_NE(more.output.find("FLOP/B (" + guides + "; that is of 80 SMs: the peak is scaled to 132, all else is not)\n"), std::string::npos)
      << more.output;
  const Outcome fewer = plan("--gemm 512x512x512 --for h200 --sm 66");
  EXPECT_NE(fewer.output.find("; that is of 132 SMs: the peak is scaled to 66, all else is not)\n"), std::string::npos) << fewer.output;
  EXPECT_NE(fewer.output.find("measured on an NVIDIA H200; by --sm scaled from 132 SMs to 66\n"), std::string::npos) << fewer.output;
  EXPECT_EQ(plan("--gemm 512x512x512 --for h200 --sm 132").output.find("scaled"), std::string::npos);
  EXPECT_EQ(objects("--gemm 512x512x512 --for h200 --sm 66").at(0).at("sm_count"), 66);
}

TEST_F(PlanCommand, ALayersThreeGemms) {
  const std::vector<json> gemms = gemms_of("--layer '4096<-1024@2560' --for h200 --tile 256x128");
  ASSERT_EQ(gemms.size(), 3u);
  EXPECT_EQ(gemms[0].at("role"), "forward");
  EXPECT_EQ(gemms[0].at("tiles"), 320);
  EXPECT_NEAR(gemms[0].at("wave_fraction"), 0.808, 5e-4);
  EXPECT_EQ(gemms[1].at("m"), 1024);
  EXPECT_EQ(gemms[1].at("k"), 4096);
  EXPECT_EQ(gemms[2].at("n"), 4096);
  EXPECT_EQ(gemms[2].at("k"), 2560);
  EXPECT_EQ(gemms[2].at("b_major"), "n");
  double shares = 0.0;
  for (const json& gemm : gemms) shares += gemm.at("share_fraction").get<double>();
  EXPECT_NEAR(shares, 1.0, 1e-9);
  // Step 1's alignment, as rows that follow one another have it, and as aligned rows do.
  const json packed = objects("--layer '33708<-1024@5120' --for h200").at(0);
  EXPECT_EQ(packed.at("d_alignment_bytes"), 8);
  const std::string reason = packed.at("reason");
  EXPECT_EQ(reason.rfind("predicted ", 0), 0u) << reason;
  EXPECT_NE(reason.find("; refused: "), std::string::npos) << reason;
  EXPECT_EQ(objects("--layer '33708<-1024@5120' --for h200 --pitch aligned").at(0).at("d_alignment_bytes"), 128);
}

// Section 3.2: below 300 blocks a tail shows, and has a star. 299 and 301 tiles, a little over two waves each.
TEST_F(PlanCommand, ATailShowsBelow300Blocks) {
  const auto stars = [](const std::string& gemm) {
    const Outcome outcome = plan("--gemm " + gemm + " --for h200 --tile 128x128 --blocks-per-sm 1");
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return outcome.output.find("* fewer than 300 CTAs") != std::string::npos;
  };
  EXPECT_TRUE(stars("1664x2944x1024"));
  EXPECT_FALSE(stars("896x5504x1024"));
  EXPECT_FALSE(stars("1408x1536x1024")) << "132 tiles fill a wave";
}

TEST_F(PlanCommand, ARecipeForGpusThatAreNotHere) {
  for (const std::string key :
       {"v100", "t4", "a100", "rtx3090", "a10", "l4", "l40s", "rtx4090", "h100-pcie", "h100-sxm", "gh200", "h200", "b200", "rtx5090"}) {
    std::map<std::string, int> kinds;
    const std::string half = key == "v100" || key == "t4" ? "fp16" : "bf16";
    for (const json& object : objects(recipe("transformer_big.toml") + " --for " + key + " --set run.precision=" + half)) {
      ++kinds[object.at("kind")];
      if (object.at("kind") == "gemm") {
        EXPECT_GT(object.at("predicted_us"), 0.0);
        EXPECT_GT(object.at("useful_fraction"), 0.0);
        EXPECT_LE(object.at("useful_fraction"), 1.0);
      }
      if (object.at("kind") == "step") {
        EXPECT_EQ(object.at("rows"), 2 * 5120);
        EXPECT_GT(object.at("predicted_us"), 0.0);
      }
    }
    EXPECT_GE(kinds["gemm"], 20) << key;
    EXPECT_GE(kinds["operation"], 10) << key;
    EXPECT_GE(kinds["advice"], 5) << key;
    EXPECT_EQ(kinds["step"], 1) << key;
  }
}

// Pairs of 20 source rows and 20 target rows, whatever batch.sequence allows, and what is said of lengths.
TEST_F(PlanCommand, AttentionIsThatOfTheCorpus) {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, int bytes) {
    std::ofstream file(folder.path() / name);
    for (int i = 0; i < 300; ++i) file << std::string(static_cast<std::size_t>(bytes - 3), 'a') << 100 + i << '\n';
    return quoted((folder.path() / name).string());
  };
  std::ofstream(folder.path() / "pairs.toml")
      << "[model]\nd_model = 128\nd_ff = 512\nheads = 4\nencoder_layers = 2\ndecoder_layers = 2\nvocabulary = 260\n"
         "max_positions = 1000\n[data]\nkind = \"parallel\"\ntokenizer = \"bytes\"\n[batch]\nsource_tokens = 1000\n"
         "target_tokens = 1000\nsequence = 20\n[run]\nsteps = 6\n";
  const std::string pairs = quoted((folder.path() / "pairs.toml").string()) + " --for h200 --set data.source=" + write("a.src", 20) +
                            " --set data.target=" + write("a.tgt", 19);
  const auto step = [&](const std::string& options) {
    for (const json& object : objects(pairs + options)) {
      if (object.at("kind") == "step") return object;
    }
    return json();
  };
  const json first = step("");
  EXPECT_EQ(first.at("matrix_flops"), 5'883'904'000) << "5,704,704,000 in GEMMs, 179,200,000 in attention";
  EXPECT_NE(first.at("attention_lengths").get<std::string>().find("a source token's sentence has 20 tokens on average"), std::string::npos);
  for (const char* bound : {" --set batch.sequence=100", " --set batch.sequence=1000"}) {
    EXPECT_EQ(step(bound).at("matrix_flops"), first.at("matrix_flops")) << bound;
    EXPECT_EQ(step(bound).at("predicted_us"), first.at("predicted_us")) << bound;
  }
  EXPECT_EQ(step(" --set batch.accumulate=65536").at("matrix_flops"), 65536 * first.at("matrix_flops").get<std::int64_t>());
  const Outcome unknown = plan(pairs + " --set data.source=nowhere --set batch.sequence=100");
  EXPECT_NE(unknown.output.find("\nattention is counted as if sentences had batch.sequence = 100 tokens"), std::string::npos)
      << unknown.output;
}

TEST_F(PlanCommand, TablesSayWhatAPersonAsks) {
  const Outcome h200 = plan(recipe("transformer_big.toml") + " --for H200");
  ASSERT_EQ(h200.status, 0) << h200.output;
  for (const char* part : {"NVIDIA H200 (132 SMs): 989.4 TFLOP/s in bf16, 4,800 GB/s; math-limited above 206.1 FLOP/B", "decoder.*.ffn.up",
                           "alignment", "useful", "waves", "not GEMMs", "attention", "a step is predicted to take ", " target rows/s",
                           "\nbound by math in GEMMs ", "\nroofline time ", "advice", "no change advised, predicted gain"}) {
    EXPECT_NE(h200.output.find(part), std::string::npos) << part << "\n" << h200.output;
  }
  EXPECT_NE(h200.output.find("memory 5.7 GiB of 140.4 GiB\n"), std::string::npos) << h200.output;
  EXPECT_NE(h200.output.find("\ntimes of tilewave's own kernels: measured on an NVIDIA H200\n"), std::string::npos) << h200.output;
  // GEMMs in the guide's tiles are no kernels of tilewave's.
  const std::string guides = "\ntimes of GEMMs in the guide's tiles: the shares of the peak that its figures reach";
  for (const std::string key : {"v100", "t4"}) {
    const Outcome step = plan(recipe("tiny.toml") + " --set run.precision=fp16 --for " + key);
    EXPECT_NE(step.output.find(guides + "; of what is no GEMM: not measured: scaled from an NVIDIA H200\n"), std::string::npos)
        << step.output;
    EXPECT_EQ(step.output.find("own kernels"), std::string::npos) << step.output;
  }
  const Outcome no_units = plan("--gemm 512x512x512 --for v100 --precision bf16");
  EXPECT_EQ(no_units.status, 2);
  EXPECT_NE(no_units.output.find("has no units for --precision bf16; use --precision fp16."), std::string::npos) << no_units.output;
  for (const std::string gemm : {"--for v100", "--for b200", "--for h200 --tile 256x128"}) {
    EXPECT_NE(plan("--gemm 8192x8192x8192 " + gemm).output.find(guides + "\n"), std::string::npos) << gemm;
  }
  const Outcome l4 = plan(recipe("gpt2_124m.toml") + " --for l4");
  ASSERT_EQ(l4.status, 0) << l4.output;
  EXPECT_NE(l4.output.find("it does not fit: gpt2_124m needs"), std::string::npos) << l4.output;
  EXPECT_NE(l4.output.find("--set batch.target_tokens="), std::string::npos) << l4.output;
  const Outcome cpu = plan(recipe("tiny.toml") + " --device cpu --threads 2");
  ASSERT_EQ(cpu.status, 0) << cpu.output;
  EXPECT_NE(cpu.output.find("(2 threads)"), std::string::npos) << cpu.output;
}

// The case study's steps by prediction: each setting of the recipe's own switches, or of those asked for.
TEST_F(PlanCommand, PredictsTheSettingsOfAnAblation) {
  std::map<std::string, json> settings;
  for (const json& object : objects(recipe("ablate_vocabulary.toml") + " --for h200")) {
    if (object.at("kind") == "setting") settings[object.at("name")] = object;
  }
  ASSERT_EQ(settings.size(), 4U);
  const json& padded = settings.at("pad_vocabulary_to=8 row_pitch=packed");
  EXPECT_EQ(padded.at("baseline"), "pad_vocabulary_to=1 row_pitch=packed");
  EXPECT_EQ(padded.at("vocabulary_padded"), 33712);
  EXPECT_GT(padded.at("gain_fraction"), 0.005);  // rows of 33,708 elements start on 8 bytes, which the Hopper rows take
  EXPECT_LT(padded.at("gain_fraction"), 0.05);
  EXPECT_NEAR(settings.at("pad_vocabulary_to=8 row_pitch=aligned").at("gain_fraction").get<double>(), 0.0, 0.01);
  // A switch of padding alone meets the recipe's packed rows, as a framework without pitches has them.
  const std::vector<json> alone = objects(recipe("ablate_vocabulary.toml") + " --for h200 --switch pad_vocabulary_to=1,8");
  ASSERT_EQ(alone.back().at("name"), "pad_vocabulary_to=8");
  EXPECT_DOUBLE_EQ(alone.back().at("gain_fraction"), padded.at("gain_fraction"));
  const Outcome table = plan(recipe("tiny.toml") + " --for h200 --switch pad_vocabulary_to=1,8 --switch gemm.engine=in_house,cublaslt");
  ASSERT_EQ(table.status, 0) << table.output;
  for (const char* part : {"switches, by predicted time per real target token", "pad_vocabulary_to=8 engine=in_house", "baseline",
                           "pad_vocabulary_to=1 engine=cublaslt has no prediction: a library's times are not predicted."}) {
    EXPECT_NE(table.output.find(part), std::string::npos) << part << "\n" << table.output;
  }
  EXPECT_EQ(plan(recipe("tiny.toml") + " --for h200").output.find("switches, by"), std::string::npos);
}

// Each setting's adjustments stand beneath the table with the waves on both sides, and in its JSON.
TEST_F(PlanCommand, SettingsSayWhatTheGuidelinesMadeOfThem) {
  const std::string options = recipe("transformer_big.toml") +
                              " --for h200 --switch wave_free_batch=off,nearest --switch batch.source_tokens+batch.target_tokens=4096,5120"
                              " --set guidelines.row_pitch=packed";
  const Outcome table = plan(options);
  ASSERT_EQ(table.status, 0) << table.output;
  for (const char* part : {"\nwhat the guidelines made of it\n  wave_free_batch: source and target rows 4096", " waves; ",
                           "\n    in wave_free_batch=nearest batch.source_tokens+batch.target_tokens=4096\n", "  GEMMs'\n"}) {
    EXPECT_NE(table.output.find(part), std::string::npos) << part << "\n" << table.output;
  }
  int settings = 0;
  for (const json& object : objects(options)) {
    if (object.at("kind") != "setting") continue;
    ++settings;
    const bool waves = object.at("name").get<std::string>().starts_with("wave_free_batch=nearest");
    ASSERT_EQ(object.at("adjustments").size(), waves ? 1U : 0U) << object;
    EXPECT_TRUE(object.at("gemm_gain_fraction").is_number()) << object;
    EXPECT_EQ(object.at("target_tokens"), object.at("target_rows"));
    if (!waves) continue;
    const json& adjustment = object.at("adjustments").at(0);
    EXPECT_EQ(adjustment.at("rule"), "wave_free_batch");
    EXPECT_EQ(adjustment.at("to"), object.at("target_rows"));
    EXPECT_NE(adjustment.at("why").get<std::string>().find(" waves"), std::string::npos) << adjustment;
  }
  EXPECT_EQ(settings, 4);
}

// What docs/use/plan.md says of step 3: 2,560 rows are ahead of 2,048 on both GPUs. Only on V100 do whole waves make the difference, so
// that its GEMMs gain most of what the step does; and what a limit of a quarter makes of the batches is printed with either side's waves.
TEST_F(PlanCommand, PredictsTheGuidesThirdStepAsDocsTellIt) {
  const auto told = [&](const std::string& device) {
    json found;
    for (const json& object : objects(recipe("ablate_waves.toml") + device)) {
      if (object.at("kind") == "setting" && object.at("name") == "wave_free_batch=nearest batch.source_tokens+batch.target_tokens=2048") {
        found = object;
      }
    }
    return found;
  };
  const json v100 = told(" --for v100 --set run.precision=fp16"), h200 = told(" --for h200");
  for (const json* one : {&v100, &h200}) {
    ASSERT_FALSE(one->is_null());
    EXPECT_EQ(one->at("target_rows"), 2560);
    EXPECT_GT(one->at("gain_fraction"), 0.05);
  }
  const auto of_gemms = [](const json& setting) { return setting.at("gemm_gain_fraction").get<double>(); };
  EXPECT_GT(of_gemms(v100), 2.0 * of_gemms(h200));
  EXPECT_GT(of_gemms(v100), 0.8 * v100.at("gain_fraction").get<double>());
  EXPECT_LT(of_gemms(h200), 0.6 * h200.at("gain_fraction").get<double>());
  const auto why = [](const json& setting) { return setting.at("adjustments").at(0).at("why").get<std::string>(); };
  EXPECT_NE(why(v100).find("3.20 waves; then 4096 x 2560 in 256x128: 320 tiles, 4.00 waves"), std::string::npos) << why(v100);
  EXPECT_NE(why(h200).find("1.94 waves; then 4096 x 2560 in 128x160: 512 tiles, 3.88 waves"), std::string::npos) << why(h200);
}

// The settings that can be planned are printed, and the exit code is that of the one that cannot.
TEST_F(PlanCommand, ASettingThatCannotBePlannedIsAnInputError) {
  for (const char* form : {"", " --json"}) {
    const Outcome outcome = plan(recipe("tiny.toml") + " --for h200 --switch pad_vocabulary_to=1,bad,8" + form);
    EXPECT_EQ(outcome.status, 2) << outcome.output;
    for (const char* part : {"guidelines.pad_vocabulary_to is \"bad\"; it must be an integer from 1 to 65536 (tokens).",
                             "pad_vocabulary_to=8", "tilewave: pad_vocabulary_to=bad: "}) {
      EXPECT_NE(outcome.output.find(part), std::string::npos) << part << "\n" << outcome.output;
    }
  }
}

TEST_F(PlanCommand, MovesABatchToWholeWavesAndSaysSo) {
  const std::string waves = " --set guidelines.wave_free_batch=up --set guidelines.wave_tile=256x128 --set guidelines.wave_limit=0.3";
  const std::string batch = " --set batch.source_tokens=4096 --set batch.target_tokens=4096 --set run.precision=fp16";
  const Outcome outcome = plan(recipe("transformer_big.toml") + " --for v100" + waves + batch);
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("wave_free_batch: source and target rows 4096 -> "), std::string::npos) << outcome.output;
}

// What the step takes, what bounds it and what would be better stand before the first table.
TEST_F(PlanCommand, TheAnswerComesFirst) {
  const std::string step = plan(recipe("transformer_big.toml") + " --for h200").output;
  std::size_t last = 0;
  for (const char* part :
       {"transformer_big on NVIDIA H200 (132 SMs): a step is predicted to take 1", "\nbound by ", "\nroofline time ", "\nmemory ",
        "\nadvice, by predicted time per real token\n", "\n  source and target rows 5120 -> ", "\n  vocabulary 33708: no change",
        "\nNVIDIA H200 (132 SMs): 989.4 TFLOP/s", "kernel/tile", "\ndecoder.projection\n", "not GEMMs"}) {
    const std::size_t at = step.find(part);
    ASSERT_NE(at, std::string::npos) << part << "\n" << step;
    EXPECT_GE(at, last) << part << "\n" << step;
    last = at;
  }
  const std::string gemm = plan("--gemm 8192x128x8192 --for v100").output, answer = gemm.substr(0, gemm.find('\n'));
  EXPECT_TRUE(answer.starts_with("forward of 8192x128x8192 on ")) << gemm;
  EXPECT_NE(answer.find(", bound by memory, in guide_"), std::string::npos) << gemm;
  const std::string cpu = plan(recipe("tiny.toml") + " --device cpu").output;
  EXPECT_NE(cpu.substr(0, cpu.find('\n')).find("a step's GEMMs are predicted to take "), std::string::npos) << cpu;
}

// What a student is told of one GEMM: rate, FLOPs and bytes, what bounds it and by how much, the guide's blocks, waves, multiples, sizes.
TEST_F(PlanCommand, AnswersAStudent) {
  const std::string gemm = plan("--gemm 8192x128x8192 --for v100").output;
  for (const char* part :
       {"\n  17.18 GFLOP over 138.4 MB are 124.1 FLOP/B, where math limits from 138.9 on; ", " TFLOP/s; the roofline time is ",
        "\n  bound by memory: at the printed bandwidth its bytes take 153.8 us, ", " CTAs' worth of tiles, ",
        "the guide asks for 4 per SM, 320, before it calls parallelism enough", "\nlimited by math, not memory, from N = 144 on",
        "\nwhole waves at multiples of N = ", "\nmultiples: sizes of f16 are best as multiples of 8. Rows start on 128 bytes here\n",
        "\nsizes near it that are better, each alone\n"}) {
    EXPECT_NE(gemm.find(part), std::string::npos) << part << "\n" << gemm;
  }
  EXPECT_NE(plan("--gemm 5120x2048x4096 --for v100").output.find("  M, N, K: no number near makes half a percent more FLOP/s\n"),
            std::string::npos);
  const std::string gpt2 = plan("--gemm 50257x4096x768 --for rtx4090").output;
  EXPECT_NE(gpt2.find("Packed, some rows start on 2 bytes; an aligned pitch (--pitch aligned) starts all of them on 128"),
            std::string::npos)
      << gpt2;
  EXPECT_NE(plan("--gemm 50257x4096x768 --for rtx4090 --pitch aligned").output.find("starts rows on 128 bytes already"), std::string::npos);
  const std::string a100 = plan("--layer '1024<-4096@8192' --for a100").output;
  for (const char* part : {"the guide measured about 250 TFLOP/s for this layer", "times of tilewave's own kernels: not measured",
                           "the guide's figures of this GPU are cuBLAS's", "\ndgrad: whole waves at multiples of tokens = "}) {
    EXPECT_NE(a100.find(part), std::string::npos) << part << "\n" << a100;
  }
  const std::vector<json> layer = objects("--layer '4096<-1024@2560' --for v100");
  ASSERT_EQ(layer.size(), 4U);
  EXPECT_EQ(layer[0].at("whole_waves_n"), 640);
  EXPECT_EQ(layer[0].at("ctas"), 320);
  EXPECT_EQ(layer[0].at("guides_ctas"), 320);
  EXPECT_NEAR(layer[0].at("tflops").get<double>(), 21.47 / layer[0].at("predicted_us").get<double>() * 1e3, 0.05);
  EXPECT_EQ(layer[3].at("kind"), "answer");
  EXPECT_EQ(layer[3].at("best_multiple"), 8);
  EXPECT_EQ(layer[3].at("math_limited_from"), 168);
}

// C of alpha A B + beta C is one more matrix of D's shape, here of 128 MiB, and a product that memory bounds takes as much longer.
TEST_F(PlanCommand, BetaPricesTheReadOfC) {
  const auto of = [](const std::string& more) { return objects("--gemm 8192x8192x64 --for h200 --pitch aligned" + more).at(0); };
  const json without = of(""), with = of(" --beta");
  EXPECT_EQ(with.at("bytes").get<std::int64_t>() - without.at("bytes").get<std::int64_t>(), std::int64_t{128} << 20);
  EXPECT_GT(with.at("predicted_us"), 1.3 * without.at("predicted_us").get<double>());
}

// Tensor Cores as libraries once had them.
TEST_F(PlanCommand, AStrictPolicyFallsBackToCudaCores) {
  const auto rows = [](const std::string& layer) {
    std::vector<std::string> names;
    for (const json& object : objects("--layer '" + layer + "' --for v100 --policy strict")) names.push_back(object.value("kernel", ""));
    return names;
  };
  const std::string tensor = "guide_tensor_cores", cuda = "guide_cuda_cores";
  EXPECT_EQ(rows("4096<-1024@4095"), (std::vector<std::string>{tensor, tensor, cuda, ""})) << "figure 8a";
  EXPECT_EQ(rows("4096<-1024@4096"), (std::vector<std::string>{tensor, tensor, tensor, ""}));
  EXPECT_EQ(rows("33708<-1024@5120"), (std::vector<std::string>{cuda, cuda, cuda, ""})) << "figure 7a";
  EXPECT_EQ(objects("--gemm 33708x5120x1024 --for v100").at(0).at("kernel"), tensor);
}

TEST_F(PlanCommand, AnswersOfWhatIsNoGemm) {
  const std::string relu = plan("--op relu 65536x4096 --for v100").output;
  for (const char* part : {"relu of 65536x4096 on Tesla V100-SXM2-32GB (80 SMs) is predicted to take ", ", bound by memory\n",
                           " are 0.25 FLOP/B", "worth fusing: ", "\ntimes of operations: not measured"}) {
    EXPECT_NE(relu.find(part), std::string::npos) << part << "\n" << relu;
  }
  const json norm = objects("--op layer_norm 65536x1024 --for h200").at(0);
  EXPECT_EQ(norm.at("limit"), "memory");
  EXPECT_LT(norm.at("flops_per_byte"), 10.0);
  EXPECT_GT(norm.at("predicted_us"), norm.at("least_us"));
}

// Deep Learning Performance, table 4 and figure 20, and what tilewave launches for it.
TEST_F(PlanCommand, AnswersOfAConvolution) {
  const std::string figure20 = "--convolution '40x16x16x256->512,3x3,pad=same' --for v100 --tile 128x128";
  const std::vector<json> lines = objects(figure20);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0].at("kind"), "convolution");
  EXPECT_EQ(lines[0].at("dot_product"), 2304);
  EXPECT_EQ(lines[0].at("output_height"), 16);
  const char* const roles[] = {"forward", "dgrad", "wgrad"};
  const std::int64_t sizes[][3] = {{10240, 512, 2304}, {10240, 256, 4608}, {2304, 512, 10240}};
  for (std::size_t i = 0; i < 3; ++i) {
    const json& phase = lines[i + 1];
    EXPECT_EQ(phase.at("role"), roles[i]);
    EXPECT_EQ(phase.at("m"), sizes[i][0]);
    EXPECT_EQ(phase.at("n"), sizes[i][1]);
    EXPECT_EQ(phase.at("k"), sizes[i][2]);
    EXPECT_EQ(phase.at("tile"), "128x128");
    EXPECT_GT(phase.at("predicted_us"), phase.at("implicit_us"));
  }
  EXPECT_EQ(lines[2].at("tiles"), 160);
  EXPECT_EQ(lines[2].at("blocks_per_sm"), 2);
  EXPECT_EQ(lines[1].at("launches").at(0).at("operation"), "im2col");
  EXPECT_EQ(objects("--convolution '8x16x16x64->64,1x1' --for h200").at(1).at("launches").size(), 1U);
  EXPECT_EQ(objects("--convolution '1x16x16x3->8,3x3,dilation=2' --for h200").at(0).at("effective_height"), 5);
  const std::string text = plan(figure20).output;
  for (const char* part : {"a 3x3 convolution of 40x16x16x256 into 40x16x16x512, stride 1, padding 1 on Tesla V100-SXM2-32GB (80 SMs)\n",
                           "each output is a dot product of 2,304 elements\n", "\nforward: an implicit GEMM is predicted to take ",
                           "; tilewave's im2col ", " + gemm ", "tilewave has none yet", "\ndgrad", "10,240", "4,608"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  const std::string strided = plan("--convolution '8x56x56x64->128,3x3,stride=2,pad=1' --for h200").output;
  EXPECT_NE(strided.find("\n  its GEMM of M x N x K has 4 times the convolution's products"), std::string::npos) << strided;
  EXPECT_NE(plan("--convolution '8x16x16x64->64,1x1' --for h200").output.find("; tilewave's gemm takes "), std::string::npos);
  EXPECT_NE(plan("--convolution '1x8x8x3->4,3x3' --device cpu").output.find("; what tilewave's im2col and gemm take is not known\n"),
            std::string::npos);
  const json cpu = objects("--convolution '1x8x8x3->4,3x3' --device cpu").at(1);
  EXPECT_TRUE(cpu.at("predicted_us").is_null());
  EXPECT_GT(cpu.at("tiles"), 0);
}

// Hours, money, and the error to expect.
TEST_F(PlanCommand, AnswersWhatARunCosts) {
  const std::string big = recipe("transformer_big.toml") + " --for h200";
  const std::vector<json> of_steps = objects(big + " --steps 100000 --price 2.5");
  const json run = of_steps.back();
  ASSERT_EQ(run.at("kind"), "run");
  double step_us = 0.0;
  for (const json& object : of_steps) {
    if (object.at("kind") == "step") step_us = object.at("predicted_us");
  }
  EXPECT_NEAR(run.at("hours").get<double>(), step_us * 1e-6 * 1e5 / 3600.0, 1e-9);
  EXPECT_NEAR(run.at("cost").get<double>(), 2.5 * run.at("hours").get<double>(), 1e-9);
  EXPECT_GT(run.at("error_fraction").get<double>(), 0.0);
  const json of_tokens = objects(big + " --tokens 1000000000").back();
  const double tokens_a_step = run.at("target_tokens").get<double>() / 1e5;
  EXPECT_EQ(of_tokens.at("steps"), static_cast<std::int64_t>(std::ceil(1e9 / tokens_a_step)));
  EXPECT_TRUE(of_tokens.at("cost").is_null());
  const std::string text = plan(big + " --steps 100000 --price 2.5").output;
  EXPECT_NE(text.find("\n100,000 steps, "), std::string::npos) << text;
  EXPECT_NE(text.find(" at 2.5 an hour; expect an error of up to 5.5 %, "), std::string::npos) << text;
  EXPECT_NE(plan(recipe("tiny.toml") + " --for a100 --steps 10").output.find("the error is not known: scaled from an H200"),
            std::string::npos);
  const std::string cpu = plan(recipe("tiny.toml") + " --device cpu --steps 10").output;
  EXPECT_NE(cpu.find("10 steps: hours are unknown"), std::string::npos) << cpu;
  EXPECT_EQ(objects(recipe("tiny.toml") + " --for h200").back().at("kind"), "step");
}

TEST_F(PlanCommand, GptsVocabularyIsKept) {
  const std::string gpt2 = plan(recipe("gpt2_124m.toml") + " --for h200").output;
  EXPECT_NE(gpt2.find("\n  vocabulary 50257: no change advised, predicted gain "), std::string::npos) << gpt2;
  EXPECT_NE(gpt2.find("; row_pitch = aligned starts its rows on 128 bytes already, without padding\n"), std::string::npos) << gpt2;
  for (const json& object : objects(recipe("gpt2_124m.toml") + " --for h200 --set guidelines.row_pitch=packed")) {
    if (object.at("kind") != "advice" || object.at("quantity") != "vocabulary") continue;
    EXPECT_GE(object.at("to"), 50257);
    EXPECT_EQ(object.at("remark"), "--set guidelines.row_pitch=aligned starts its rows on 128 bytes without padding");
  }
}

// Which d_ff: every number that was tried, what the effects cost there, and which one is advised.
TEST_F(PlanCommand, SaysWhatADFfIsWorth) {
  const std::string asked = recipe("llama_1b.toml") +
                            " --for h200 --set model.d_model=4096 --set model.decoder_layers=2 --set model.d_ff=10922 --set "
                            "guidelines.row_pitch=packed";
  const std::string printed = plan(asked + " --wide").output;
  for (const char* part : {"d_ff 10922 -> ", "of the time of ffn by themselves alignment (4 -> ", "alignment      of      of",
                           "costs   tiles   waves", "10,922", "11,008", "as it is", "advised"}) {
    EXPECT_NE(printed.find(part), std::string::npos) << part << "\n" << printed;
  }
  int sizes = 0;
  for (const json& object : objects(asked)) {
    if (object.at("kind") != "advice") continue;
    EXPECT_EQ(object.at("tried").empty(), object.at("quantity") != "d_ff");
    for (const json& tried : object.at("tried")) {
      ++sizes;
      if (tried.at("size") != 11008) continue;
      EXPECT_EQ(tried.at("alignment_bytes"), 128);
      EXPECT_EQ(tried.at("alignment_cost_fraction"), 0.0);
      EXPECT_GT(tried.at("part_us").get<double>(), 0.0);
    }
  }
  EXPECT_GE(sizes, 6);
}

// What ranks say to each other takes the links' time, of which the step waits for what the backward pass does not hide.
TEST_F(PlanCommand, PredictsWhatRanksAreWorth) {
  const auto step_of = [&](const std::string& options) {
    for (const json& object : objects(recipe("transformer_big.toml") + " --for h200 " + options)) {
      if (object.at("kind") == "step") return object;
    }
    return json();
  };
  const json one = step_of("--set batch.source_tokens=2560 --set batch.target_tokens=2560"), two = step_of("--gpus 2"),
             apart = step_of("--gpus 2 --nodes 2 --interconnect 5");
  EXPECT_EQ(one.at("ranks"), 1);
  EXPECT_EQ(one.at("links_us"), 0.0);
  EXPECT_EQ(one.at("efficiency_fraction"), 1.0);
  for (const json* step : {&two, &apart}) {
    const auto number = [&](const char* name) { return step->at(name).get<double>(); };
    EXPECT_EQ(step->at("ranks"), 2);
    EXPECT_GT(number("exposed_links_us"), 0.0);
    EXPECT_LT(number("exposed_links_us"), number("links_us"));
    EXPECT_NEAR(number("efficiency_fraction"), number("alone_us") / number("predicted_us"), 1e-9);
  }
  // Of 450 GB/s and 5, all but what each sum takes to begin.
  EXPECT_GT(apart.at("links_us").get<double>(), 45.0 * two.at("links_us").get<double>());
  EXPECT_LT(apart.at("efficiency_fraction").get<double>(), two.at("efficiency_fraction").get<double>());
  EXPECT_NE(plan(recipe("transformer_big.toml") + " --for h200 --gpus 2").output.find("2 ranks: what they exchange takes the links"),
            std::string::npos);
  for (const char* wrong : {"--gpus 3 --nodes 2 --interconnect 50", "--gpus 2 --nodes 2", "--gpus 2 --interconnect 50"}) {
    const Outcome refused = plan(recipe("transformer_big.toml") + " --for h200 " + wrong);
    EXPECT_EQ(refused.status, 2) << refused.output;
    EXPECT_NE(refused.output.find("--nodes"), std::string::npos) << refused.output;
  }
}

TEST_F(PlanCommand, RefusesWithASentence) {
  const auto expect = [&](const std::string& options, const std::string& part) {
    const Outcome outcome = plan(options);
    EXPECT_EQ(outcome.status, 2) << options << "\n" << outcome.output;
    EXPECT_NE(outcome.output.find(part), std::string::npos) << options << "\n" << outcome.output;
  };
  expect("", "plan takes a recipe, or --gemm MxNxK, or --layer out<-in@tokens");
  expect(recipe("tiny.toml") + " --gemm 1x2x3", "plan takes a recipe, or --gemm");
  expect(recipe("tiny.toml") + " --for h300", "no profile of a device called \"h300\"; there are v100, t4,");
  expect(recipe("tiny.toml") + " --for h200 --device cpu", "name two devices");
  expect(recipe("tiny.toml") + " --tile 128x128", "--tile goes with --gemm, --layer and --convolution");
  expect(recipe("tiny.toml") + " --precision fp16", "recipe excludes --precision");
  expect(recipe("tiny.toml") + " --pitch aligned", "recipe excludes --pitch");
  expect("--gemm 1x2x3 --set run.precision=fp16", "--set and --switch change a recipe");
  expect("--layer '8<-8@8' --switch pad_vocabulary_to=1,8", "--set and --switch change a recipe");
  expect("--gemm 2000000x2000000x2000000 --for h200", "has more multiply-adds than");
  expect("--layer '16777216<-1048576@16777216' --for h200", "has more multiply-adds than");
  expect("--gemm 512x512x512 --device cpu --tile 128x128", "counts on a GPU's SMs");
  expect("--op layernorm 8x8 --for h200", "there is no operation called layernorm (did you mean layer_norm?); there are layer_norm, ");
  expect("--op softmax 8 --for h200", "--op softmax 8: a matrix is written rows x columns, for example 65536x1024.");
  expect("--op softmax 8x8 --gemm 1x2x3 --for h200", "--op softmax is no GEMM");
  expect("--op softmax 8x8 --set run.steps=1", "--set and --switch change a recipe");
  expect("--op softmax 8x8 --beta --for h200", "--beta is a GEMM's, and --op softmax is none");
  expect("--convolution 1x8x8x3 --for h200", "--convolution 1x8x8x3: a convolution is written NxHxWxC->K,RxS[,stride=1]");
  expect("--convolution '1x8x8x4->4,3x3,groups=4' --for h200", "grouped and depthwise convolutions are not here");
  expect("--convolution '1x8x8x4->4,9x9' --for h200", "a filter of 9 x 9 does not fit in an image of 8 x 8");
  expect("--convolution '1x8x8x4->4,3x3' --gemm 1x2x3", "--convolution 1x8x8x4->4,3x3 is three GEMMs of its own");
  expect("--convolution '1x8x8x4->4,3x3' --beta", "it goes with none of --gemm, --layer, --op and --beta.");
  expect("--convolution '1x8x8x4->4,3x3' --draw a.svg", "a picture is of one GEMM's tiles");
  expect("--convolution '1x8x8x4->4,3x3' --device cpu --tile 128x128", "counts on a GPU's SMs");
  expect(recipe("tiny.toml") + " --convolution '1x8x8x4->4,3x3'", "--convolution");
  expect(recipe("tiny.toml") + " --beta", "--beta");
  expect(recipe("tiny.toml") + " --op softmax", "recipe excludes --op");
  expect("--gemm 1x2x3 --for v100 --policy strict --tile 128x128", "--policy strict chooses a kernel, and --tile 128x128");
  expect("--gemm 1x2x3 --for v100 --policy loose", "--policy");
  expect("--gemm 1x2x3 --steps 5", "--steps and --tokens are a run's");
  expect(recipe("tiny.toml") + " --price 2", "--price is what an hour costs");
  expect(recipe("tiny.toml") + " --steps 1 --tokens 1", "--steps excludes --tokens");
  expect(recipe("tiny.toml") + " --steps 0", "--steps");
  expect(recipe("tiny.toml") + " --steps 1 --price 0", "--price");
  expect("--gemm 1x2x3 --blocks-per-sm 2", "--blocks-per-sm requires --tile");
  expect(recipe("transformer_big.toml") + " --for v100", "has no units for run.precision = \"bf16\"; use --set run.precision=fp16.");
  for (const std::string gemm : {"0x1x1", "-1x2x3", "1x2", "1x2x3x4", "axbxc", "99999999999x1x1", "''"}) {
    expect("--gemm " + gemm + " --for h200 --json", gemm == "''" ? "--gemm: its value is empty" : "a GEMM is written MxNxK");
  }
  for (const std::string layer : {"512", "512<-128", "512<-128@0", "512->128@4", "512<-128@4x"}) {
    expect("--layer '" + layer + "' --for h200", "a layer is written out<-in@tokens");
  }
  for (const std::string tile : {"128", "0x128", "128x-1", "128x128x8"}) {
    expect("--gemm 1x2x3 --tile " + tile, "a tile is written MxN");
  }
  expect("--gemm 1x2x3 --sm 0 --tile 8x8", "--sm");
  expect("--gemm 1x2x3 --sm -8 --tile 8x8", "--sm");
  expect(recipe("tiny.toml") + " --for h200 --set guidelines.wave_free_batch=nearest --set guidelines.wave_layer=nothing",
         "names no layer");
}

}  // namespace
}  // namespace tilewave

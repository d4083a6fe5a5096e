// app/text/plot.py: loss.csv always, loss.png where matplotlib is, a sentence where it is not.
#include <filesystem>
#include <gtest/gtest.h>
#include <string>

#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

class Plot : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(script_)) GTEST_SKIP() << "app/text/plot.py is not beside --data";
    if (shell("python3 --version", run_).status != 0) GTEST_SKIP() << "there is no python3";
  }

  // Without matplotlib: a module of that name that cannot be imported stands before any real one.
  Outcome plot_without_matplotlib(const std::string& what = ".") {
    write_text(run_ / "absent" / "matplotlib.py", "raise ImportError('absent')\n");
    return shell("PYTHONPATH=absent python3 " + quoted(script_.string()) + " " + what, run_);
  }

  TemporaryFolder folder_;
  fs::path run_ = folder_.path();
  fs::path script_ = fs::absolute(test_environment().data).lexically_normal() / ".." / "app" / "text" / "plot.py";
};

TEST_F(Plot, WithoutMatplotlibWritesTheTableAndSaysSo) {
  write_text(run_ / "metrics.jsonl",
             R"({"step": 1, "loss": 4.5, "learning_rate": 0.001}
{"step": 2, "loss": 9.0}
{"step": 2, "loss": 4.25, "validation_loss": 4.0}
{"step": 3, "loss": null}
{"step": 4, "lo)");
  const Outcome outcome = plot_without_matplotlib();
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("matplotlib is not installed"), std::string::npos) << outcome.output;
  EXPECT_EQ(file_text(run_ / "loss.csv"), "step,loss,validation_loss,learning_rate\n1,4.5,,0.001\n2,4.25,4.0,\n3,,,\n");
  EXPECT_FALSE(fs::exists(run_ / "loss.png"));
}

TEST_F(Plot, TheLastValidationIsInTheSummary) {
  write_text(run_ / "metrics.jsonl", "{\"step\": 1, \"loss\": 4.5}\n{\"step\": 2, \"loss\": 4.25}\n");
  write_text(run_ / "summary.json", "{\"steps\": 2, \"loss\": 4.25, \"validation_loss\": 4.125}\n");
  plot_without_matplotlib();
  EXPECT_EQ(file_text(run_ / "loss.csv"), "step,loss,validation_loss\n1,4.5,\n2,4.25,4.125\n");
}

TEST_F(Plot, DrawsChartsOrSaysWhyNot) {
  const auto panel = [](const char* scale, const char* points) {
    return concat(R"({"title": "p", "x_label": "N", "y_label": "us", "x_scale": ")", scale, R"(", "y_scale": "linear", "curves": [)",
                  R"({"label": "a", "kind": "predicted", "color": 0, "points": [)", points,
                  R"(]}, {"label": "b", "kind": "measured", "color": 9, )", R"("points": [)", points,
                  R"(]}], "marks": [{"label": "m", "at": 1.5}], "levels": [{"label": "l", "at": 2}]})");
  };
  const std::string curves = concat(R"({"name": "curves", "title": "t", "categories": [], "panels": [)",
                                    panel("linear", "[1, 2, 0, 0], [2, 3, 0, 0]"), ", ", panel("log", "[1, 2, 1, 3], [2, 3, 2, 4]"), "]}");
  const std::string bars = concat(R"({"name": "bars", "title": "t", "categories": ["x", "y"], "panels": [)",
                                  panel("categories", "[0, 2, 0, 0], [1, 3, 0, 0]"), "]}");
  write_text(run_ / "charts.json", concat(R"({"charts": [)", curves, ", ", bars, "]}"));
  const std::string plot = "python3 " + quoted(script_.string()) + " ";
  const Outcome drawn = shell(plot + "charts.json", run_);
  EXPECT_EQ(drawn.status, 0) << drawn.output;
  const bool both = fs::exists(run_ / "curves.png") && fs::exists(run_ / "bars.png");
  EXPECT_TRUE(both || drawn.output.find("matplotlib is not installed") != std::string::npos) << drawn.output;
  write_text(run_ / "charts.json", "{\"n\": 96}\n");
  EXPECT_EQ(shell(plot + "charts.json", run_).status, 2);
}

TEST_F(Plot, DrawsAnAblationOrSaysWhyNot) {
  write_text(run_ / "ablation.json", R"({"recipe": "r", "device": "a CPU", "variants": [
    {"name": "a", "baseline": "a", "ran": true, "predicted_gain_fraction": 0.0, "measured_gain_fraction": 0.0,
     "gemms": [{"layer": "decoder.projection", "role": "forward", "concerned": false, "tflops": 0.1}]},
    {"name": "b", "baseline": "a", "ran": true, "predicted_gain_fraction": null, "measured_gain_fraction": 0.2,
     "gemms": [{"layer": "decoder.projection", "role": "forward", "concerned": true, "tflops": 0.2}]},
    {"name": "c", "baseline": "a", "ran": false, "refused": "it does not fit."}]})");
  const std::string plot = "python3 " + quoted(script_.string()) + " .";
  const Outcome drawn = shell(plot, run_);
  EXPECT_EQ(drawn.status, 0) << drawn.output;
  EXPECT_TRUE(fs::exists(run_ / "ablation.png") || drawn.output.find("matplotlib is not installed") != std::string::npos) << drawn.output;
  write_text(run_ / "ablation.json", "{\"recipe\": \"r\"}\n");
  EXPECT_EQ(shell(plot, run_).status, 2);
}

TEST_F(Plot, DrawsGuidelinesOrSaysWhyNot) {
  const std::string text = R"({"commit": "0", "device": "a GPU", "rows": [{"guideline": "1", "change": "1 to 8", "ablation": "a.json",
    "in_house": {"from": "a", "to": "b"}}]})";
  const auto ablation = [](const std::string& predicted_us) {
    const std::string gemms = R"("gemms": [{"role": "wgrad", "count": 2, "time_us": 9.0, "predicted_us": )" + predicted_us + "}]";
    return R"({"variants": [
      {"name": "a", "ran": true, "target_tokens": 1, "step_us": 3.0, "step_predicted_us": 2.0, )" +
           gemms + R"(},
      {"name": "b", "ran": true, "target_tokens": 1, "step_us": 1.0, "step_predicted_us": 1.0, )" +
           gemms + R"(},
      {"name": "c", "ran": false, "refused": "no"}]})";
  };
  write_text(run_ / "g.json", text);
  write_text(run_ / "a.json", ablation("8.0"));
  const Outcome without = plot_without_matplotlib("g.json");
  EXPECT_EQ(without.status, 1) << without.output;  // nothing else came of it
  EXPECT_NE(without.output.find("g.png is not drawn"), std::string::npos) << without.output;
  const std::string plot = "python3 " + quoted(script_.string()) + " g.json";
  const Outcome drawn = shell(plot, run_);
  EXPECT_EQ(drawn.status, fs::exists(run_ / "g.png") ? 0 : 1) << drawn.output;
  EXPECT_EQ(fs::exists(run_ / "g.png"), drawn.output.find("matplotlib is not installed") == std::string::npos) << drawn.output;
  write_text(run_ / "a.json", ablation("null"));
  EXPECT_EQ(shell(plot, run_).status, 2);
  write_text(run_ / "a.json", "{}\n");
  EXPECT_EQ(shell(plot, run_).status, 2);
}

TEST_F(Plot, NoValidationNoColumn) {
  write_text(run_ / "metrics.jsonl", "{\"step\": 1, \"loss\": 4.5}\n");
  EXPECT_EQ(plot_without_matplotlib().status, 0);
  EXPECT_EQ(file_text(run_ / "loss.csv"), "step,loss\n1,4.5\n");
}

TEST_F(Plot, NamesTheLineThatIsNoMetric) {
  write_text(run_ / "metrics.jsonl", "{\"step\": 1, \"loss\": 4.5}\n{\"loss\": 4}\n");
  const Outcome outcome = plot_without_matplotlib();
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.output.find("metrics.jsonl:2"), std::string::npos) << outcome.output;
}

// The training loss has smoothing and dropout where the run's recipe has them, and says so.
TEST_F(Plot, NamesWhatIsInTheTrainingLoss) {
  const auto label = [&](const std::string& recipe) {
    write_text(run_ / "recipe.toml", recipe);
    return shell(
               "python3 -c 'import sys, pathlib; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1]); import plot; "
               "print(plot.training_label(pathlib.Path(\".\")))' " +
                   quoted(script_.parent_path().string()),
               run_)
        .output;
  };
  EXPECT_EQ(label("[model]\ndropout = 0.1\nattention_dropout = 0.0\n[optimizer]\nlabel_smoothing = 0.1\n"),
            "training loss (smoothed, with dropout)\n");
  EXPECT_EQ(label("[model]\ndropout = 0.0\nattention_dropout = 5e-2\n"), "training loss (with dropout)\n");
  EXPECT_EQ(label("[optimizer]\nlabel_smoothing = 0.1\n"), "training loss (smoothed)\n");
  EXPECT_EQ(label("[model]\ndropout = 0.0\n"), "training loss\n");
  fs::remove(run_ / "recipe.toml");
  EXPECT_EQ(shell("python3 " + quoted(script_.string()) + " .", run_).status, 2) << "no metrics";
}

TEST_F(Plot, DrawsAPng) {
  if (shell("python3 -c 'import matplotlib' || /usr/bin/python3 -c 'import matplotlib'", run_).status != 0)
    GTEST_SKIP() << "matplotlib is not installed";
  write_text(run_ / "metrics.jsonl", "{\"step\": 1, \"loss\": 4.5}\n{\"step\": 2, \"loss\": 4.0, \"validation_loss\": 4.0}\n");
  const std::string plot = "python3 " + quoted(script_.string()) + " .";
  const auto height = [&] {  // the picture's, which its header holds
    const Outcome outcome = shell(plot, run_);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    const std::string picture = file_text(run_ / "loss.png");
    EXPECT_TRUE(picture.starts_with("\x89PNG")) << outcome.output;
    int pixels = 0;
    for (std::size_t i = 20; i < 24 && i < picture.size(); ++i) pixels = 256 * pixels + static_cast<unsigned char>(picture[i]);
    return pixels;
  };
  const int losses_alone = height();
  write_text(run_ / "metrics.jsonl", R"({"step": 1, "loss": 4.5, "learning_rate": 0.1, "gradient_norm": 2.0}
{"step": 2, "loss": 4.0, "learning_rate": 0.2, "gradient_norm": 0.0}
)");
  EXPECT_GT(height(), losses_alone) << "learning rate and gradient norm are below";
  EXPECT_EQ(file_text(run_ / "loss.csv"), "step,loss,learning_rate,gradient_norm\n1,4.5,0.1,2.0\n2,4.0,0.2,0.0\n");
}

}  // namespace
}  // namespace tilewave

#include "framework/io/json_lines.h"

#include <clocale>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "kernels/core/error.h"
#include "tests/framework/io/faults.h"
#include "tests/framework/io/files.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

std::string line_of(std::int64_t step) { return JsonObject().add("step", step).add("loss", 0.5).text() + "\n"; }

TEST(JsonObject, WritesEveryKindOfField) {
  EXPECT_EQ(JsonObject().text(), "{}");
  EXPECT_EQ(
      JsonObject()
          .add("step", 3)
          .add("loss", 0.1f)
          .add("double", 0.1)
          .add("large", 1e300)
          .add("least", std::numeric_limits<std::int64_t>::min())
          .add("name", "a \"quoted\"\nname")
          .add("ok", true)
          .text(),
      R"({"step": 3, "loss": 0.1, "double": 0.1, "large": 1e+300, "least": -9223372036854775808, "name": "a \"quoted\"\nname", "ok": true})");
  EXPECT_EQ(JsonObject().add("a", std::nan("")).add("b", -std::numeric_limits<float>::infinity()).text(), R"({"a": null, "b": null})");
  EXPECT_TRUE(nlohmann::json::accept(JsonObject().add("bad \xff key", "bad \xff value").text()));
}

TEST(JsonObject, NumbersReadBackAsTheSameValue) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    const auto back = nlohmann::json::parse(JsonObject().add("x", value).text())["x"].get<double>();
    EXPECT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(value));
    const auto narrow = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isfinite(narrow)) continue;
    const auto narrow_back = static_cast<float>(nlohmann::json::parse(JsonObject().add("x", narrow).text())["x"].get<double>());
    EXPECT_EQ(std::bit_cast<std::uint32_t>(narrow_back), std::bit_cast<std::uint32_t>(narrow));
  }
}

TEST(JsonObject, DoesNotDependOnTheLocale) {
  const std::locale before;
  struct CommaPoint : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::locale::global(std::locale(before, new CommaPoint));
  const std::string text = JsonObject().add("step", 1234567).add("loss", 2.5).text();
  std::locale::global(before);
  EXPECT_EQ(text, R"({"step": 1234567, "loss": 2.5})");
}

TEST(JsonLines, AppendsWholeLines) {
  const MemoryFolder folder;
  put(folder / "m", "of a former run");
  JsonLines lines = JsonLines::create(folder / "m");
  std::string expected;
  for (int step = 1; step <= 3; ++step) {
    lines.append(JsonObject().add("step", step).add("loss", 0.5));
    expected += line_of(step);
    EXPECT_EQ(contents_of(folder / "m"), expected) << "a line is with the system as soon as append returns";
  }
  lines.sync();
}

TEST(JsonLines, ResumeDropsTornLinesAndThosePastTheStep) {
  const std::string through_3 = line_of(1) + line_of(2) + line_of(3);
  struct Case {
    std::string before;
    std::int64_t step;
    std::string after;
    std::int64_t dropped;
  };
  const std::vector<Case> cases{
      {"", 5, "", 0},
      {through_3, 3, through_3, 0},
      {through_3 + line_of(4) + line_of(5), 3, through_3, 2},
      {through_3 + "{\"step\": 4, \"lo", 9, through_3, 1},
      {through_3 + line_of(4).substr(0, line_of(4).size() - 1), 9, through_3, 1},  // whole but for its newline
      {through_3 + std::string(4096, '\0'), 9, through_3, 1},                      // what a power cut leaves on some file systems
      {line_of(1) + std::string("{\"step\": 2}\0x\n", 14), 9, line_of(1), 1},
      {line_of(1) + "torn\n" + line_of(2), 9, line_of(1) + line_of(2), 1},
      {line_of(1) + "{\"loss\": 1}\n" + "{\"step\": 1.5}\n" + "[1]\n" + "\n", 9, line_of(1), 4},
      {through_3, 0, "", 3},
  };
  for (const Case& each : cases) {
    const MemoryFolder folder;
    put(folder / "m", each.before);
    JsonLines lines = JsonLines::resume(folder / "m", each.step);
    EXPECT_EQ(contents_of(folder / "m"), each.after);
    EXPECT_EQ(lines.dropped_lines(), each.dropped) << each.before;
    lines.append(JsonObject().add("step", 7).add("loss", 0.5));
    EXPECT_EQ(contents_of(folder / "m"), each.after + line_of(7));
  }
}

TEST(JsonLines, ResumesWhereThereIsNoFile) {
  const MemoryFolder folder;
  JsonLines::resume(folder / "m", 5).append(JsonObject().add("step", 6).add("loss", 0.5));
  EXPECT_EQ(contents_of(folder / "m"), line_of(6));
}

TEST(JsonLines, ResumeCountsTheStepsWithoutALine) {
  struct Case {
    std::string before;
    std::int64_t step, missing, first;
  };
  const std::string all = line_of(1) + line_of(2) + line_of(3) + line_of(4);
  const std::vector<Case> cases{
      {all, 4, 0, 0},
      {all, 3, 0, 0},
      {"", 0, 0, 0},
      {"", 3, 3, 1},
      {line_of(1) + line_of(4), 4, 2, 2},
      {line_of(2) + line_of(4), 4, 2, 1},
      {line_of(1) + line_of(2), 4, 2, 3},
      {line_of(1) + "torn\n" + line_of(3), 3, 1, 2},
      {line_of(1) + line_of(2) + line_of(2) + line_of(3), 3, 0, 0},  // twice is not missing
      {line_of(1) + line_of(9), 3, 2, 2},                            // a line past the step stands for none before it
  };
  for (const Case& each : cases) {
    const MemoryFolder folder;
    put(folder / "m", each.before);
    const JsonLines::Missing missing = JsonLines::resume(folder / "m", each.step).missing();
    EXPECT_EQ(missing.steps, each.missing) << each.before << " step " << each.step;
    EXPECT_EQ(missing.first, each.first) << each.before << " step " << each.step;
  }
  const MemoryFolder folder;
  EXPECT_EQ(JsonLines::resume(folder / "absent", 7).missing().steps, 7);
}

TEST(JsonLines, KnowsWhetherItsFileIsStillThere) {
  const MemoryFolder folder;
  const JsonLines lines = JsonLines::create(folder / "m");
  EXPECT_TRUE(lines.in_place());
  fs::rename(folder / "m", folder / "n");
  EXPECT_FALSE(lines.in_place());
  put(folder / "m", "another");
  EXPECT_FALSE(lines.in_place());
  fs::rename(folder / "n", folder / "m");
  EXPECT_TRUE(lines.in_place());
  fs::remove(folder / "m");
  EXPECT_FALSE(lines.in_place());
}

TEST(JsonLines, ALineThatDoesNotFitIsTakenBack) {
  const MemoryFolder folder;
  JsonLines lines = JsonLines::create(folder / "m");
  lines.append(JsonObject().add("step", 1).add("loss", 0.5));
  {
    system_calls().write = [](int descriptor, const void* data, std::size_t bytes) -> ssize_t {
      if (bytes < 10) return errno = ENOSPC, -1;
      return ::write(descriptor, data, bytes - 9);  // the disk takes all but nine bytes
    };
    const std::string complaint = sentence_of<Error>([&] { lines.append(JsonObject().add("step", 2).add("loss", 0.5)); });
    system_calls().write = ::write;
    EXPECT_NE(complaint.find("No space left on device"), std::string::npos);
  }
  EXPECT_EQ(contents_of(folder / "m"), line_of(1));
  lines.append(JsonObject().add("step", 2).add("loss", 0.5));
  EXPECT_EQ(contents_of(folder / "m"), line_of(1) + line_of(2));
}

TEST(JsonLines, AFaultAtAnyCallLosesNoFormerLine) {
  bool struck = true;
  for (int call = 0; struck; ++call) {
    const MemoryFolder folder;
    put(folder / "m", line_of(1) + line_of(2) + line_of(3) + "{\"step\": 4");
    {
      const Faults faults({.call = call, .error = EIO});
      const std::string complaint = sentence_of<Error>([&] {
        JsonLines lines = JsonLines::resume(folder / "m", 2);
        lines.append(JsonObject().add("step", 3).add("loss", 0.5));
        lines.sync();
      });
      struck = faults.struck();
      if (!struck) {
        EXPECT_EQ(complaint, "");
      }
    }
    JsonLines::resume(folder / "m", 2);
    EXPECT_EQ(contents_of(folder / "m"), line_of(1) + line_of(2)) << "call " << call;
  }
}

TEST(JsonLines, SignalsAndShortWritesDoNoHarm) {
  for (const Faults::Plan& plan : {Faults::Plan{.fault = Fault::once, .error = EINTR}, Faults::Plan{.fault = Fault::short_write}}) {
    bool struck = true;
    for (int call = 0; struck; ++call) {
      const MemoryFolder folder;
      put(folder / "m", line_of(1) + line_of(2));
      const Faults faults({.fault = plan.fault, .call = call, .error = plan.error});
      JsonLines lines = JsonLines::resume(folder / "m", 1);
      lines.append(JsonObject().add("step", 2).add("loss", 0.5));
      lines.sync();
      EXPECT_EQ(contents_of(folder / "m"), line_of(1) + line_of(2)) << "call " << call;
      struck = faults.struck();
    }
  }
}

}  // namespace
}  // namespace tilewave

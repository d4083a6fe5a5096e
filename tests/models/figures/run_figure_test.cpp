// The loop on a real device, the CPU: measured beside predicted, what an earlier run measured taken over, a stop, gaps with their reasons;
// and the files that keep it all.
#include "models/figures/run_figure.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <sstream>

#include "framework/measure/operation_work.h"
#include "kernels/core/error.h"
#include "models/figures/effects.h"
#include "models/figures/figure_files.h"
#include "models/figures/gemm_points.h"
#include "models/figures/sweep.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

FigureSetting cpu_setting() { return {.device = probe_cpu(1), .precision = Precision::fp32}; }

Figure small_sweep() {
  Sweep sweep = {.text = "64x8:24:8x32", .axis = "N", .at = {8, 16, 24}, .phases = {GemmRole::forward, GemmRole::wgrad}};
  for (const std::int64_t n : sweep.at) sweep.layers.push_back({.out = 64, .in = 32, .tokens = n});
  return sweep_figure(sweep);
}

TEST(RunFigure, MeasuresEveryPointBesideItsPrediction) {
  const FigureSetting setting = cpu_setting();
  const Figure figure = small_sweep();
  const FigureRun run = run_figure({.figure = figure, .setting = setting, .queue = make_cpu_queue(1), .rounds = 2});
  ASSERT_EQ(run.records.size(), 6U);
  EXPECT_EQ(run.measured, 6U);
  EXPECT_EQ(run.reused, 0U);
  for (const FigureRecord& record : run.records) {
    EXPECT_GT(record.measured_s, 0.0);
    EXPECT_LE(record.lower_quartile_s, record.measured_s);
    EXPECT_LE(record.measured_s, record.upper_quartile_s);
    EXPECT_EQ(record.rounds, 2);
    EXPECT_FALSE(record.kernel.empty());
    EXPECT_EQ(record.flops, 2 * record.m * record.n * record.k);
  }
}

TEST(RunFigure, WhatIsKnownIsNotMeasuredAgainUnlessMoreRoundsAreAsked) {
  const FigureSetting setting = cpu_setting();
  const Figure figure = small_sweep();
  FigureRequest request = {.figure = figure, .setting = setting, .queue = make_cpu_queue(1), .rounds = 2};
  const FigureRun first = run_figure(request);
  request.known = first.records;
  request.known.erase(request.known.begin() + 1);
  const FigureRun second = run_figure(request);
  EXPECT_EQ(second.measured, 1U);
  EXPECT_EQ(second.reused, 5U);
  EXPECT_EQ(second.records.front().measured_s, first.records.front().measured_s);
  request.rounds = 3;
  EXPECT_EQ(run_figure(request).measured, 6U);
  request.rounds = 1;
  request.known = first.records;
  request.known.front().kernel = "another";  // a plan that would be another today
  EXPECT_EQ(run_figure(request).measured, 1U);
}

TEST(RunFigure, StopsBehindAPlace) {
  const FigureSetting setting = cpu_setting();
  const Figure figure = small_sweep();
  std::vector<std::size_t> heard;
  const FigureRun run = run_figure({.figure = figure,
                                    .setting = setting,
                                    .queue = make_cpu_queue(1),
                                    .rounds = 1,
                                    .place_done = [&](const FigureRecords& records, std::size_t all) {
                                      EXPECT_EQ(all, 6U);
                                      heard.push_back(records.size());
                                      return heard.size() == 2;
                                    }});
  EXPECT_TRUE(run.stopped);
  EXPECT_EQ(heard, (std::vector<std::size_t>{2, 4}));
  EXPECT_EQ(run.records.size(), 4U);
}

TEST(RunFigure, OperationsAreMeasuredToo) {
  const FigureSetting setting = cpu_setting();
  const Figure figure = {.name = "relu", .axis = "elements", .points = [](const FigureSetting&) {
                           FigurePoints points;
                           for (const char* name : {"relu", "relu_backward"}) {
                             FigurePoint& point = points.points.emplace_back();
                             point.series = name;
                             point.operation = name;
                             point.shape = {7, 24};
                           }
                           return points;
                         }};
  const FigureRun run = run_figure({.figure = figure, .setting = setting, .queue = make_cpu_queue(1), .rounds = 1});
  ASSERT_EQ(run.measured, 2U);
  EXPECT_EQ(run.records.front().bytes, 2 * 7 * 24 * 4);
  EXPECT_EQ(run.records.back().bytes, 3 * 7 * 24 * 4);
  for (const FigureRecord& record : run.records) EXPECT_GT(record.measured_s, 0.0);
}

TEST(RunFigure, AGapHasItsReasonAndTheOthersGoOn) {
  const FigureSetting setting = cpu_setting();
  const Figure figure = {.name = "gap", .axis = "N", .points = [](const FigureSetting& of) {
                           FigurePoints points;
                           const GemmProblem problem = blas_gemm({.m = 16, .n = 16, .k = 16}, of.precision, PitchPolicy::packed);
                           points.points = {chosen_point({.series = "a"}, problem), chosen_point({.series = "b"}, problem)};
                           points.points.front().choice.forced = "stream_k";  // a GPU's
                           return points;
                         }};
  const FigureRun run = run_figure({.figure = figure, .setting = setting, .queue = make_cpu_queue(1), .rounds = 1});
  EXPECT_NE(run.records.front().refused.find("it runs on a GPU"), std::string::npos) << run.records.front().refused;
  EXPECT_FALSE(run.records.front().measured());
  EXPECT_TRUE(run.records.back().measured());
}

FigureRecord some_record() {
  FigureRecord record = {.series = "256x128 \"held\", and", .group = "any", .label = "2560", .x = 0.1};
  record.operation = "gemm", record.phase = "forward", record.layout = "TN";
  record.m = 4096, record.n = 2560, record.k = 1024;
  record.flops = 2 * record.m * record.n * record.k, record.bytes = 35'651'584;
  record.kernel = "k", record.tile = "256x128", record.tiles = 320, record.slots = 80;
  record.predicted_s = 1.23456789e-4, record.measured_s = 1e-4, record.lower_quartile_s = 0.9e-4, record.upper_quartile_s = 1.2e-4;
  record.rounds = 5;
  return record;
}

TEST(FigureFiles, ReadBackWhatTheyHold) {
  const TemporaryFolder folder;
  FigureRecord gap = {.series = "b", .refused = "no, \"none\""};
  const FigureHead head = {.figure = "f",
                           .device = "NVIDIA H200",
                           .sm_count = 132,
                           .precision = "fp16",
                           .printed = true,
                           .how = "so",
                           .command = "c",
                           .commit = "1"};
  EXPECT_FALSE(read_figure(folder.path() / "f.jsonl"));
  write_text(folder.path() / "f.jsonl", jsonl_of(head, {some_record(), gap}));
  const auto stored = read_figure(folder.path() / "f.jsonl");
  ASSERT_TRUE(stored && stored->records.size() == 2);
  EXPECT_EQ(stored->head.device, head.device);
  EXPECT_EQ(stored->head.printed, true);
  EXPECT_TRUE(stored->records[0].same_question(some_record()));
  EXPECT_DOUBLE_EQ(stored->records[0].measured_s, 1e-4);
  EXPECT_NEAR(stored->records[0].predicted_s, 1.23456789e-4, 1e-18);
  EXPECT_TRUE(std::isnan(stored->records[1].measured_s));
  EXPECT_EQ(stored->records[1].refused, gap.refused);

  write_text(folder.path() / "f.jsonl", jsonl_of(head, {some_record()}) + "{\"kind\": 1}\n");
  EXPECT_THROW(read_figure(folder.path() / "f.jsonl"), InputError);
  write_text(folder.path() / "f.jsonl", "");
  EXPECT_THROW(read_figure(folder.path() / "f.jsonl"), InputError);
}

TEST(FigureFiles, CsvHasAFieldForEveryHeading) {
  std::istringstream lines(csv_of({some_record()}));
  std::string heading, line;
  ASSERT_TRUE(std::getline(lines, heading) && std::getline(lines, line));
  EXPECT_TRUE(line.starts_with("\"256x128 \"\"held\"\", and\",any,2560,0.1,gemm,forward,TN,4096,2560,1024,")) << line;
  const std::string unquoted = line.substr(line.find("and\",") + 5);
  EXPECT_EQ(std::ranges::count(heading, ','), 1 + std::ranges::count(unquoted, ','));
  for (const char* name : {"floor_us", "predicted_us", "measured_us", "lower_quartile_us", "tflops", "gbytes_per_s", "useful_fraction",
                           "waves", "tail_fraction"}) {
    EXPECT_NE(("," + heading + ",").find(concat(",", name, ",")), std::string::npos) << name;
  }
}

TEST(FigureEffects, ARatioHasTheRangeOfItsQuartiles) {
  FigureRecord over = some_record(), under = some_record();
  over.x = 2, under.x = 1;
  over.flops = 2 * under.flops;
  over.predicted_s = 3e-4, over.measured_s = 2e-4, over.lower_quartile_s = 1.8e-4, over.upper_quartile_s = 2.4e-4;
  std::vector<Effect> effects;
  add_ratio(effects, {.what = "times", .over = &over, .under = &under});
  add_ratio(effects, {.what = "rates", .of = RatioOf::rates, .over = &over, .under = &under});
  add_ratio(effects, {.what = "nothing", .over = nullptr, .under = &under});
  ASSERT_EQ(effects.size(), 2U);
  EXPECT_NEAR(effects[0].measured, 2.0, 1e-12);
  EXPECT_NEAR(effects[0].predicted, 3.0 / 1.23456789, 1e-12);
  EXPECT_NEAR(effects[0].low, 1.8 / 1.2, 1e-12);
  EXPECT_NEAR(effects[0].high, 2.4 / 0.9, 1e-12);
  EXPECT_NEAR(effects[1].measured, 1.0, 1e-12);
  EXPECT_LT(effects[1].low, effects[1].high);
  const PredictionError error = prediction_error({over, under, FigureRecord{}});
  EXPECT_EQ(error.points, 2U);
  EXPECT_NEAR(error.mean, (0.5 + 0.23456789) / 2, 1e-9);
}

}  // namespace
}  // namespace tilewave

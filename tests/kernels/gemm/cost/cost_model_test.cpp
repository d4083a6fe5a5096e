// The cost model as data, and what choosing by it promises, over random problems on GPUs that are not here.
#include "kernels/gemm/cost/cost_model.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <set>

#include "kernels/gemm/catalog.h"
#include "tests/kernels/gemm/gpus.h"

namespace tilewave {
namespace {

GemmProblem random_problem(std::mt19937& random) {
  const auto draw = [&](std::int64_t most) {  // as often small as large, and a multiple of 8 half the time
    const double size = std::exp(std::uniform_real_distribution<double>(0.0, std::log(static_cast<double>(most)))(random));
    return random() % 2 == 0 ? round_up(static_cast<std::int64_t>(size), 8) : static_cast<std::int64_t>(size);
  };
  GemmProblem p = {.role = static_cast<GemmRole>(random() % 3), .m = draw(60000), .n = draw(60000), .k = draw(20000), .epilogue = {}};
  p.operand_dtype = p.output_dtype = random() % 3 == 0 ? DType::f32 : random() % 2 == 0 ? DType::bf16 : DType::f16;
  p.a_major = p.role == GemmRole::forward ? Major::k : Major::m;
  p.b_major = p.role == GemmRole::wgrad ? Major::n : Major::k;
  p.math = p.operand_dtype == DType::f32 && random() % 2 == 0 ? MathMode::tf32 : MathMode::ieee;
  if (p.role == GemmRole::wgrad) {
    p.output_dtype = DType::f32;
    p.epilogue = {.bias_gradient = random() % 2 == 0, .accumulate = random() % 2 == 0};
  } else if (random() % 2 == 0) {
    p.epilogue = {.bias = true, .activation = static_cast<Activation>(random() % 4), .saved_input = random() % 2 == 0};
  }
  const auto pitch = [&](std::int64_t cols, DType dtype) { return random() % 3 == 0 ? cols : round_up(cols, 128 / size_of(dtype)); };
  p.a_pitch = pitch(p.a_major == Major::k ? p.k : p.m, p.operand_dtype);
  p.b_pitch = pitch(p.b_major == Major::k ? p.k : p.n, p.operand_dtype);
  p.d_pitch = pitch(p.m, p.output_dtype);
  p.a_alignment = alignment_of(0, p.a_pitch * size_of(p.operand_dtype));
  p.b_alignment = alignment_of(0, p.b_pitch * size_of(p.operand_dtype));
  p.d_alignment = alignment_of(0, p.d_pitch * size_of(p.output_dtype));
  return p;
}

TEST(CostModel, ConstantsHaveNamesOfTheirOwnAndAreAboveZero) {
  std::set<std::string_view> names;
  const CostModel model;
  for (const CostConstant& constant : cost_constants()) {
    EXPECT_TRUE(names.insert(constant.name).second) << constant.name;
    EXPECT_GT(model.*constant.value, 0.0) << constant.name;
    EXPECT_FALSE(constant.unit.empty() || constant.meaning.empty()) << constant.name;
    if (constant.name.ends_with("_fraction")) {
      EXPECT_LE(model.*constant.value, 1.0) << constant.name;
    }
  }
  EXPECT_EQ(names.size() * sizeof(double) + sizeof(double), sizeof(CostModel) - sizeof(OperationModel))
      << "every number but the source has a name";
  for (const OperationConstant& constant : operation_constants()) {
    EXPECT_TRUE(names.insert(constant.name).second) << constant.name;
    EXPECT_GT(model.operations.*constant.value, 0.0) << constant.name;
    EXPECT_FALSE(constant.unit.empty() || constant.meaning.empty()) << constant.name;
  }
  EXPECT_EQ(operation_constants().size() * sizeof(double), sizeof(OperationModel)) << "every number has a name";
}

TEST(CostModel, SaysWhoseNumbersTheyAre) {
  EXPECT_EQ(source_of(default_cost_model("NVIDIA H200")), "measured on an NVIDIA H200");
  EXPECT_EQ(source_of(default_cost_model("NVIDIA A100-SXM4-80GB")), "not measured: scaled from an NVIDIA H200");
  EXPECT_EQ(source_of({.source = CostModelSource::calibrated}), "calibrated here");
  EXPECT_EQ(source_of(cost_model_of(h200())), "measured on an NVIDIA H200") << "a device without a model of its own has its name's";
  EXPECT_EQ(source_of(cost_model_of(a100())), "not measured: scaled from an NVIDIA H200");
}

TEST(CostModel, TheLongestPartDecides) {
  const DeviceInfo device = h200();
  const CostModel& model = cost_model_of(device);
  EXPECT_DOUBLE_EQ(seconds_of(GemmWork{}, device), model.launch_s);
  const double cycles = seconds_of({.schedule_cycles = 1.98e6}, device) - model.launch_s;
  EXPECT_NEAR(cycles, 1e-3, 1e-9);
  const GemmWork read = {.read_bytes = 4.8e9 * model.read_fraction}, written = {.written_bytes = 4.8e9 * model.write_fraction};
  EXPECT_NEAR(seconds_of(read, device) - model.launch_s, 1e-3, 1e-9);
  EXPECT_NEAR(seconds_of(written, device) - model.launch_s, 1e-3, 1e-9);
  const double both = seconds_of({.schedule_cycles = 1.98e6, .read_bytes = read.read_bytes}, device) - model.launch_s;
  EXPECT_GT(both, 1e-3);
  EXPECT_LT(both, 1.2e-3) << "near ties take longer than either, not the sum";
}

// Rows that start on 16 bytes and no more lie across lines of memory: the same problem takes longer, whatever bounds it.
TEST(CostModel, RowsAcrossLinesTakeLonger) {
  const DeviceInfo device = h200();
  const auto aligned_to = [](std::int64_t bytes) {
    GemmProblem p = {.m = 1288, .n = 5000, .k = 1288, .operand_dtype = DType::bf16, .output_dtype = DType::bf16, .epilogue = {}};
    p.a_pitch = p.b_pitch = p.k, p.d_pitch = p.m;
    p.a_alignment = p.b_alignment = p.d_alignment = bytes;
    return p;
  };
  EXPECT_GT(memory_work(aligned_to(16), device).read_bytes, 1.05 * memory_work(aligned_to(128), device).read_bytes);
  EXPECT_GT(memory_work(aligned_to(16), device).written_bytes, 1.05 * memory_work(aligned_to(128), device).written_bytes);
  for (const std::string_view kernel : {"persistent", "persistent/deferred", "persistent/ping_pong/swap_ab", "one_wave/sliced_k"}) {
    const auto seconds = [&](std::int64_t bytes) { return choose(aligned_to(bytes), device, {.forced = std::string(kernel)}).predicted_s; };
    EXPECT_GT(seconds(16), 1.1 * seconds(128)) << kernel << ": bound by what TMA loads";
    EXPECT_GT(seconds(16), seconds(64)) << kernel;
  }
}

// What is added to is read and written.
TEST(CostModel, AddingTakesMemoryLongerThanStoring) {
  GemmProblem p = {
      .role = GemmRole::wgrad, .m = 1024, .n = 60000, .k = 96, .a_major = Major::m, .b_major = Major::n, .operand_dtype = DType::bf16};
  const GemmWork stored = memory_work(p, h200());
  p.epilogue.accumulate = true;
  const GemmWork added = memory_work(p, h200());
  EXPECT_GT(added.written_bytes, 1.1 * stored.written_bytes);
  EXPECT_EQ(added.read_bytes, stored.read_bytes) << "counted once";
}

TEST(CostModel, NoPredictionBeatsTheDevicesPeaks) {
  std::mt19937 random(3);
  for (const DeviceInfo& device : {h200(), a100()}) {
    for (int i = 0; i < 300; ++i) {
      const GemmProblem p = random_problem(random);
      const MathRates rates = math_rates(device.capability);
      const int rate = p.operand_dtype != DType::f32 ? rates.tensor_bf16 : p.math == MathMode::tf32 ? rates.tensor_tf32 : rates.fp32;
      const double math_s = static_cast<double>(p.flops()) / (2.0 * rate * static_cast<double>(device.sm_count) * device.clock_hz);
      const double memory_s = static_cast<double>(p.bytes()) / device.bandwidth_bytes_per_s;
      for (const GemmPlan& plan : gemm_candidates(p, device)) {
        EXPECT_GT(plan.predicted_s, std::max(math_s, memory_s)) << name_of(plan.composition) << " " << i;
      }
    }
  }
}

TEST(Choose, TakesTheLeastPredictedTimeAndAlwaysTheSamePlan) {
  std::mt19937 random(4);
  std::set<std::string> rows;
  for (const DeviceInfo& device : {h200(), a100()}) {
    for (int i = 0; i < 300; ++i) {
      const GemmProblem p = random_problem(random);
      const GemmPlan plan = choose(p, device);
      const std::vector<GemmPlan> candidates = gemm_candidates(p, device);
      EXPECT_TRUE(std::is_sorted(candidates.begin(), candidates.end(),
                                 [](const GemmPlan& a, const GemmPlan& b) { return a.predicted_s < b.predicted_s; }));
      EXPECT_EQ(plan, candidates.front()) << name_of(plan.composition) << " " << name_of(candidates.front()) << " " << i;
      EXPECT_EQ(plan, choose(p, device));
      EXPECT_DOUBLE_EQ(plan.predicted_s, choose(p, device).predicted_s);
      rows.insert(name_of(plan.composition));
    }
  }
  EXPECT_GE(rows.size(), 5u) << "the problems reach few rows";
}

// What a launch checks is that the row still makes the plan; so a plan outlives the model that chose it.
TEST(Choose, APlanHoldsUnderAnotherModel) {
  std::mt19937 random(5);
  DeviceInfo other = h200();
  CostModel changed;
  for (const CostConstant& constant : cost_constants())
    changed.*constant.value *= std::exp(std::uniform_real_distribution<double>(-1.0, 1.0)(random));
  other.cost_model = std::make_shared<CostModel>(changed);
  int differ = 0;
  for (int i = 0; i < 300; ++i) {
    const GemmProblem p = random_problem(random);
    const GemmPlan plan = choose(p, h200());
    EXPECT_EQ(plan, kernel_of(Backend::cuda, plan).plan(p, plan.tile, other, plan.split)) << name_of(plan.composition) << " " << i;
    differ += plan == choose(p, other) ? 0 : 1;
  }
  EXPECT_GT(differ, 0) << "the other model is no other";
}

}  // namespace
}  // namespace tilewave

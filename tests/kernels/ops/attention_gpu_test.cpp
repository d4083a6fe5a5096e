// Attention on a GPU against its definition in double, on CUDA cores and on Tensor Cores: windows and tiles begun, filled and
// crossed by sequences, every mask, draws and rows without a view; the same bits every time.
#include "tests/kernels/gpu.h"
#include "tests/kernels/ops/attention_problem.h"

namespace tilewave {
namespace {

using namespace testing_support;
using namespace testing_support::attention;

template <class T>
using StatisticOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Sequences of at most 64 rows, which are promised: around 16, 32 and 64 rows, packed and apart, in order and not, with unused lines
// between them; heads that do not fill a block.
const std::vector<Case>& short_cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> list;
    for (const std::int64_t width : {32, 64, 128}) {
      const std::vector<Segment> packed = {{0, 0, 0, 0},       {0, 1, 0, 1},      {1, 15, 1, 15},     {16, 16, 16, 16},
                                           {32, 17, 32, 17},   {49, 63, 49, 63},  {112, 64, 112, 64}, {176, 32, 176, 32},
                                           {208, 33, 208, 33}, {241, 48, 241, 48}};
      const std::vector<Segment> cross = {{200, 1, 3, 64},    {0, 0, 0, 0},      {3, 64, 90, 1},     {70, 15, 101, 17}, {86, 16, 120, 16},
                                          {0, 0, 0, 0},       {102, 17, 70, 15}, {140, 33, 140, 64}, {202, 0, 210, 20}, {210, 20, 240, 0},
                                          {240, 64, 241, 33}, {120, 2, 280, 5},  {123, 8, 288, 31},  {174, 26, 320, 63}};
      list.push_back({"short_packed", 300, 300, 3, width, packed, Mask::none, 0.0, 64});
      list.push_back({"short_packed_causal", 300, 300, 5, width, packed, Mask::causal, 0.0, 64});
      list.push_back({"short_packed_dropout", 300, 300, 2, width, packed, Mask::causal, 0.3, 64});
      list.push_back({"short_scaled", 300, 300, 2, width, packed, Mask::causal, 0.0, 64, 0.3});
      list.push_back({"short_cross", 330, 390, 4, width, cross, Mask::none, 0.0, 64});
      list.push_back({"short_cross_causal", 330, 390, 1, width, cross, Mask::causal, 0.0, 64});
      list.push_back({"short_cross_dropout", 330, 390, 7, width, cross, Mask::none, 0.1, 64});
      list.push_back({"promised_sixteen", 140, 150, 6, width, {{100, 16, 100, 15}, {4, 1, 4, 16}}, Mask::none, 0.2, 16});
      list.push_back({"fills_64_rows", 64, 64, 2, width, {{0, 64, 0, 64}}});
    }
    // More lines than a launch looks at at once, all but three of them unused.
    std::vector<Segment> lines(3001, Segment{0, 0, 0, 0});
    lines.front() = {1, 40, 1, 40}, lines[1500] = {50, 16, 50, 16}, lines.back() = {400, 20, 400, 20};
    list.push_back({"many_unused_lines", 500, 500, 32, 32, lines, Mask::causal, 0.0, 64});
    list.push_back({"one_row_in_use", 150, 300, 2, 64, {{0, 2, 299, 1}, {0, 0, 0, 0}, {149, 1, 0, 3}}, Mask::none, 0.0, 64});
    return list;
  }();
  return all;
}

// Sequences around a window's 128 rows and a tile's 64, 32 and 16; many a window; rows before, between and behind them.
const std::vector<Case>& gpu_cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> list = cases();
    list.insert(list.end(), short_cases().begin(), short_cases().end());
    for (const std::int64_t width : {32, 64, 128}) {
      list.push_back({"one_tile", 64, 64, 2, width, {{0, 64, 0, 64}}});
      list.push_back({"one_past_a_tile", 65, 65, 1, width, {{0, 65, 0, 65}}, Mask::causal});
      list.push_back({"short_sequences",
                      150,
                      150,
                      3,
                      width,
                      {{3, 14, 3, 14}, {17, 1, 17, 1}, {18, 40, 18, 40}, {58, 63, 58, 63}, {125, 20, 125, 20}}});
      list.push_back({"short_causal",
                      150,
                      150,
                      3,
                      width,
                      {{3, 14, 3, 14}, {17, 1, 17, 1}, {18, 40, 18, 40}, {58, 63, 58, 63}, {125, 20, 125, 20}},
                      Mask::causal});
      list.push_back({"unsorted", 210, 300, 2, width, {{130, 70, 2, 129}, {0, 0, 0, 0}, {1, 127, 131, 160}}});
      list.push_back({"long_causal", 640, 640, 2, width, {{0, 511, 0, 511}, {511, 129, 511, 129}}, Mask::causal});
      list.push_back({"long", 321, 450, 1, width, {{0, 321, 7, 443}}});
      list.push_back({"cached_keys", 6, 400, 2, width, {{0, 2, 0, 66}, {2, 2, 128, 66}, {4, 2, 256, 66}}, Mask::causal});
      list.push_back({"blind_queries", 200, 90, 2, width, {{0, 160, 0, 40}, {160, 40, 40, 50}}, Mask::causal});
      list.push_back({"no_keys", 140, 140, 1, width, {{0, 70, 0, 0}, {70, 0, 0, 60}, {70, 70, 70, 70}}});
      list.push_back({"dropout", 150, 203, 2, width, {{0, 70, 1, 90}, {71, 79, 92, 111}}, Mask::none, 0.3});
      list.push_back({"scaled", 300, 300, 2, width, {{1, 130, 1, 130}, {131, 166, 131, 166}}, Mask::causal, 0.0, 0, 0.3});
      list.push_back({"dropout_causal", 300, 300, 2, width, {{1, 130, 1, 130}, {131, 166, 131, 166}}, Mask::causal, 0.1});
    }
    return list;
  }();
  return all;
}

template <class T>
struct Results {
  Matrix<T> out;
  Matrix<StatisticOf<T>> log_sum_exp;
  Matrix<T> dq, dk, dv;
};

// Both passes. `gap` elements lie between rows: 0 and 8 keep rows of whole 16 bytes whole, 3 lets none be aligned.
template <class T>
Results<T> attend(Queue& queue, Problem<T>& p, std::int64_t gap) {
  using Statistic = StatisticOf<T>;
  const auto like = [&](const Matrix<T>& m) { return Matrix<T>(m.rows(), m.cols(), gap); };
  const auto with_gap = [&](const Matrix<T>& m) {
    Matrix<T> copy = like(m);
    for (std::int64_t r = 0; r < m.rows(); ++r) std::copy_n(&m(r, 0), m.cols(), &copy(r, 0));
    return copy;
  };
  const auto parts = [&] { return Matrix<T>(p.k.rows(), p.q.cols(), gap); };  // each head of queries its own
  Results<T> host{like(p.q), Matrix<Statistic>(p.q.rows(), p.shape.heads), like(p.q), parts(), parts()};
  Matrix<T> q_host = with_gap(p.q), k_host = with_gap(p.k), v_host = with_gap(p.v), dout_host = with_gap(p.dout);
  Matrix<Statistic> delta_host(p.q.rows(), p.shape.heads);
  Matrix<std::int32_t> spans_host(1, attention_spans(p.q.rows(), p.k.rows()), 0);
  OnDevice<T> q(queue, q_host), k(queue, k_host), v(queue, v_host), dout(queue, dout_host);
  OnDevice<T> out(queue, host.out), dq(queue, host.dq), dk(queue, host.dk), dv(queue, host.dv);
  OnDevice<Statistic> log_sum_exp(queue, host.log_sum_exp), delta(queue, delta_host);
  OnDevice<std::int32_t> segments(queue, p.segments), spans(queue, spans_host);
  const auto spans_before = spans_host.values();
  StepState* state = static_cast<StepState*>(allocate(queue, sizeof(StepState)));
  copy_to_device(queue, state, &p.state, sizeof(StepState));
  const AttentionDropout dropout{.probability = p.shape.dropout, .site = 5, .state = state};
  run(queue, AttentionArgs{.q = q.view(),
                           .k = k.view(),
                           .v = v.view(),
                           .segments = segments.view(),
                           .heads = p.shape.heads,
                           .kv_heads = p.shape.kv_heads,
                           .scale = p.shape.scale,
                           .sequence = p.shape.sequence,
                           .mask = p.shape.mask,
                           .dropout = dropout,
                           .out = out.view(),
                           .log_sum_exp = log_sum_exp.view(),
                           .spans = spans.view()});
  run(queue, AttentionBackwardArgs{.q = q.view(),
                                   .k = k.view(),
                                   .v = v.view(),
                                   .out = out.view(),
                                   .log_sum_exp = log_sum_exp.view(),
                                   .dout = dout.view(),
                                   .segments = segments.view(),
                                   .heads = p.shape.heads,
                                   .kv_heads = p.shape.kv_heads,
                                   .scale = p.shape.scale,
                                   .sequence = p.shape.sequence,
                                   .mask = p.shape.mask,
                                   .dropout = dropout,
                                   .dq = dq.view(),
                                   .dk = dk.view(),
                                   .dv = dv.view(),
                                   .spans = spans.view(),
                                   .delta = delta.view()});
  for (auto* matrix : {&out, &dq, &dk, &dv}) matrix->fetch();
  for (auto* matrix : {&log_sum_exp, &delta}) matrix->fetch();
  spans.fetch();
  release(queue, state);
  EXPECT_TRUE(delta_host.guards_intact());
  EXPECT_TRUE(spans_host.guards_intact());
  // Short segments need no spans and leave them alone; the others' end in counts of work taken, back to 0.
  const auto counts = spans_host.values();
  EXPECT_TRUE(counts == spans_before || (counts.end()[-1] == 0 && counts.end()[-2] == 0)) << "a count of work taken was left";
  return host;
}

// Where 16-bit results are rounded once and their terms once before they are summed, errors do not grow with the length.
template <class T>
void expect_close_to(const Matrix<T>& actual, const std::vector<double>& expected, std::int64_t length, double roundings) {
  if constexpr (kIs16Bit<T>) {
    ASSERT_EQ(actual.values().size(), expected.size());
    ASSERT_GT(norm(expected), 0.0);
    EXPECT_LE(relative_error(actual.values(), expected), roundings * epsilon<T>());
    EXPECT_TRUE(actual.guards_intact());
  } else {
    expect_close(actual, expected, length);
  }
}

template <class T>
class GpuAttention : public GpuTest {};
using Types = ::testing::Types<float, double, bf16, f16>;
TYPED_TEST_SUITE(GpuAttention, Types);
template <class T>
class GpuAttentionIn16Bits : public GpuAttention<T> {};
using TypesOf16Bits = ::testing::Types<bf16, f16>;
TYPED_TEST_SUITE(GpuAttentionIn16Bits, TypesOf16Bits);

TYPED_TEST(GpuAttention, IsTheFullSoftmaxAndItsChainRule) {
  for (const Case& c : gpu_cases()) {
    Problem<TypeParam> problem(c);
    const Reference expected = reference(problem);
    for (const std::int64_t gap : {0, 3, 8}) {
      SCOPED_TRACE(std::string(c.name) + ", heads of " + std::to_string(c.width) + ", gap " + std::to_string(gap));
      const Results<TypeParam> actual = attend(this->queue_, problem, gap);
      expect_close_to(actual.out, expected.out, c.k_rows + c.width, 1.0);
      expect_close(actual.log_sum_exp, expected.log_sum_exp, c.k_rows + c.width);
      expect_close_to(actual.dv, expected.dv, c.q_rows + c.width, 1.0);
      if (c.k_rows == 1) {  // a softmax over one key has no gradient
        for (const auto* gradient : {&actual.dq, &actual.dk}) EXPECT_LE(norm(gradient->values()), epsilon<TypeParam>());
        continue;
      }
      expect_close_to(actual.dq, expected.dq, c.k_rows + c.width, 2.0);
      expect_close_to(actual.dk, expected.dk, c.q_rows + c.width, 2.0);
    }
  }
}

TYPED_TEST(GpuAttention, TheSameInputsGiveTheSameBits) {
  for (const Case& c : gpu_cases()) {
    SCOPED_TRACE(std::string(c.name) + ", heads of " + std::to_string(c.width));
    Problem<TypeParam> problem(c);
    const Results<TypeParam> once = attend(this->queue_, problem, 0), again = attend(this->queue_, problem, 0);
    EXPECT_TRUE(same_bits(once.out, again.out));
    EXPECT_TRUE(same_bits(once.log_sum_exp, again.log_sum_exp));
    EXPECT_TRUE(same_bits(once.dq, again.dq));
    EXPECT_TRUE(same_bits(once.dk, again.dk));
    EXPECT_TRUE(same_bits(once.dv, again.dv));
  }
}

// On CUDA cores, on Tensor Cores (a gap of 3 elements) and in warpgroups: the same bits as with copies of the heads that are shared.
TYPED_TEST(GpuAttention, SharedHeadsAreTheSameAsCopiesOfThem) {
  for (const Case& c : shared_cases({7, 32, 64, 80, 128})) {
    Problem<TypeParam> shared(c), copies = repeated(shared);
    for (const std::int64_t gap : {0, 3}) {
      SCOPED_TRACE(std::string(c.name) + ", heads of " + std::to_string(c.width) + ", gap " + std::to_string(gap));
      const Results<TypeParam> actual = attend(this->queue_, shared, gap), expected = attend(this->queue_, copies, gap);
      ASSERT_GT(norm(expected.out.values()), 0.0);
      EXPECT_TRUE(same_bits(actual.log_sum_exp, expected.log_sum_exp));
      for (const auto member : {&Results<TypeParam>::out, &Results<TypeParam>::dq, &Results<TypeParam>::dk, &Results<TypeParam>::dv}) {
        EXPECT_TRUE(same_bits(actual.*member, expected.*member));
      }
    }
  }
}

// Nothing but the promise tells short sequences from others.
TYPED_TEST(GpuAttentionIn16Bits, ShortSequencesTakenWholeAgreeWithThoseThatPassBy) {
  for (const Case& c : short_cases()) {
    if (c.sequence == 0) continue;
    SCOPED_TRACE(std::string(c.name) + ", heads of " + std::to_string(c.width));
    Problem<TypeParam> problem(c);
    const Results<TypeParam> whole = attend(this->queue_, problem, 0);
    problem.shape.sequence = 0;
    const Results<TypeParam> passing = attend(this->queue_, problem, 0);
    expect_close_to(whole.out, passing.out.values(), c.width, 1.0);
    expect_close(whole.log_sum_exp, passing.log_sum_exp.values(), c.width);
    expect_close_to(whole.dv, passing.dv.values(), c.width, 1.0);
    expect_close_to(whole.dq, passing.dq.values(), c.width, 2.0);
    expect_close_to(whole.dk, passing.dk.values(), c.width, 2.0);
  }
}

// A large score would overflow exp without the running maximum; a NaN must not vanish in it.
TYPED_TEST(GpuAttention, LargeScoresStayFiniteAndANanIsSeen) {
  for (const auto& [rows, width] : {std::pair<std::int32_t, std::int64_t>{200, 4}, {200, 64}, {60, 64}}) {
    Problem<TypeParam> problem({"large", rows, rows, 1, width, {{0, rows, 0, rows}}});
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < width; ++c) problem.q(r, c) = from_double<TypeParam>(300.0 * to_double(problem.q(r, c)));
    }
    for (const double value : attend(this->queue_, problem, 0).out.values()) EXPECT_TRUE(std::isfinite(value));
    problem.k(rows - 1, 2) = from_double<TypeParam>(std::numeric_limits<double>::quiet_NaN());
    for (const double value : attend(this->queue_, problem, 0).out.values()) EXPECT_TRUE(std::isnan(value));
  }
}

// Both passes on Hopper's warpgroups, which take what TMA takes: a gap of 3 elements leaves it to the Tensor Cores'.
template <class T>
class GpuAttentionInWarpgroups : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped() && device_.capability != 90) GTEST_SKIP() << "needs compute capability 9.0, and " << device_.name << " has another.";
  }

  // What the forward pass gives, within a rounding of what is expected.
  static void expect_outputs(const Results<T>& actual, const std::vector<double>& out, const std::vector<double>& log_sum_exp,
                             std::int64_t length) {
    expect_close_to(actual.out, out, length, 1.0);
    expect_close(actual.log_sum_exp, log_sum_exp, length);
  }
  // Gradients within so many roundings of what is expected.
  static void expect_gradients(const Results<T>& actual, const std::vector<double>& dq, const std::vector<double>& dk,
                               const std::vector<double>& dv, double roundings) {
    const auto expect = [&](const char* name, const Matrix<T>& gradient, const std::vector<double>& expected) {
      SCOPED_TRACE(name);
      if (norm(expected) == 0.0) {  // a softmax over one key has no gradient
        EXPECT_LE(norm(gradient.values()), epsilon<T>());
      } else {
        expect_close_to(gradient, expected, 1, roundings);
      }
    };
    expect("dv", actual.dv, dv);
    expect("dq", actual.dq, dq);
    expect("dk", actual.dk, dk);
  }
};
using TypesOfTensorCores = ::testing::Types<bf16, f16>;
TYPED_TEST_SUITE(GpuAttentionInWarpgroups, TypesOfTensorCores);

// Tiles of 64 rows, windows of two or three of them; rows in front of, between and behind segments.
TYPED_TEST(GpuAttentionInWarpgroups, EdgesOfTilesAndWindows) {
  std::vector<Case> list;
  for (const std::int64_t width : {64, 128}) {
    for (const Mask mask : {Mask::none, Mask::causal}) {
      for (const std::int32_t length : {1, 63, 64, 65, 127, 128, 129, 191, 192, 193, 257}) {
        list.push_back({"one_sequence", length, length, 2, width, {{0, length, 0, length}}, mask});
        list.push_back({"rows_around", length + 5, length + 9, 3, width, {{2, length, 7, length}}, mask});
      }
      list.push_back({"many_in_a_window",
                      200,
                      200,
                      3,
                      width,
                      {{1, 9, 1, 9}, {10, 1, 10, 1}, {11, 52, 11, 52}, {63, 2, 63, 2}, {65, 63, 65, 63}, {130, 66, 130, 66}},
                      mask});
      list.push_back({"more_keys", 130, 400, 2, width, {{0, 65, 0, 200}, {65, 63, 200, 193}}, mask});
      list.push_back({"fewer_keys", 400, 130, 2, width, {{0, 200, 0, 65}, {200, 193, 65, 63}}, mask});
      list.push_back({"far_apart", 260, 700, 2, width, {{0, 100, 590, 110}, {100, 160, 3, 150}}, mask});
      list.push_back({"dropout", 261, 323, 2, width, {{0, 129, 3, 129}, {130, 131, 140, 180}}, mask, 0.2});
    }
  }
  for (const Case& c : list) {
    SCOPED_TRACE(std::string(c.name) + ", " + std::to_string(c.segments.front().q_length) + " queries, heads of " +
                 std::to_string(c.width) + (c.mask == Mask::causal ? ", causal" : ""));
    Problem<TypeParam> problem(c);
    const Reference expected = reference(problem);
    const Results<TypeParam> actual = attend(this->queue_, problem, 0);
    this->expect_outputs(actual, expected.out, expected.log_sum_exp, c.k_rows + c.width);
    this->expect_gradients(actual, expected.dq, expected.dk, expected.dv, 2.0);
  }
}

// More windows than a GPU has room for, so that a block takes several. Both kernels are near the mathematics and near one another; the
// pitch moves nothing, and a second run repeats every bit.
TYPED_TEST(GpuAttentionInWarpgroups, AgreesWithTensorCoresAndItself) {
  for (const std::int64_t width : {64, 128}) {
    for (const Mask mask : {Mask::none, Mask::causal}) {
      for (const double dropout : {0.0, 0.1}) {
        SCOPED_TRACE("heads of " + std::to_string(width) + (mask == Mask::causal ? ", causal" : "") + (dropout > 0.0 ? ", dropout" : ""));
        Problem<TypeParam> problem({"long",
                                    2311,
                                    2203,
                                    19,
                                    width,
                                    {{3, 700, 0, 801}, {703, 1024, 801, 1000}, {1740, 1, 1803, 100}, {1741, 500, 1903, 300}},
                                    mask,
                                    dropout});
        const Results<TypeParam> packed = attend(this->queue_, problem, 0), again = attend(this->queue_, problem, 0);
        const Results<TypeParam> pitched = attend(this->queue_, problem, 8), unaligned = attend(this->queue_, problem, 3);
        this->expect_outputs(packed, unaligned.out.values(), unaligned.log_sum_exp.values(), 2203 + width);
        this->expect_gradients(packed, unaligned.dq.values(), unaligned.dk.values(), unaligned.dv.values(), 2.0);
        EXPECT_TRUE(same_bits(packed.log_sum_exp, again.log_sum_exp));
        EXPECT_EQ(packed.log_sum_exp.values(), pitched.log_sum_exp.values());
        for (const auto member : {&Results<TypeParam>::out, &Results<TypeParam>::dq, &Results<TypeParam>::dk, &Results<TypeParam>::dv}) {
          EXPECT_TRUE(same_bits(packed.*member, again.*member));
          EXPECT_EQ((packed.*member).values(), (pitched.*member).values());
          EXPECT_TRUE((pitched.*member).guards_intact());
        }
      }
    }
  }
}

class GpuAttentionContract : public GpuTest {};

TEST_F(GpuAttentionContract, NamesAMissingWorkspace) {
  Matrix<float> matrix = Matrix<float>::filled(4, 8, 1.0F), out(4, 8);
  Matrix<std::int32_t> list = Matrix<std::int32_t>::row_of({0, 4, 0, 4});
  OnDevice<float> rows(queue_, matrix), result(queue_, out);
  OnDevice<std::int32_t> segments(queue_, list);
  expect_error(
      [&] {
        run(queue_,
            AttentionArgs{
                .q = rows.view(), .k = rows.view(), .v = rows.view(), .segments = segments.view(), .heads = 1, .out = result.view()});
      },
      "attention: spans is absent");
}

TEST_F(GpuAttentionContract, SharedHeadsOfShortSequencesAreRepeatedFirst) {
  Matrix<bf16> queries = Matrix<bf16>::filled(80, 128, bf16(1.0F)), keys = Matrix<bf16>::filled(80, 64, bf16(1.0F)), out(80, 128);
  Matrix<std::int32_t> list = Matrix<std::int32_t>::row_of({0, 64, 8, 64});
  OnDevice<bf16> q(queue_, queries), k(queue_, keys), result(queue_, out);
  OnDevice<std::int32_t> segments(queue_, list);
  const AttentionArgs args{.q = q.view(),
                           .k = k.view(),
                           .v = k.view(),
                           .segments = segments.view(),
                           .heads = 2,
                           .kv_heads = 1,
                           .sequence = 64,
                           .out = result.view()};
  expect_error([&] { run(queue_, args); }, "repeat the heads first");
}

TEST_F(GpuAttentionContract, ShortSequencesNeedNoWorkspace) {
  Matrix<bf16> matrix = Matrix<bf16>::filled(80, 64, bf16(1.0F)), out(80, 64), dq(80, 64), dk(80, 64), dv(80, 64);
  Matrix<float> statistic(80, 2);
  Matrix<std::int32_t> list = Matrix<std::int32_t>::row_of({0, 64, 8, 64});
  OnDevice<bf16> rows(queue_, matrix), result(queue_, out), queries(queue_, dq), keys(queue_, dk), values(queue_, dv);
  OnDevice<float> log_sum_exp(queue_, statistic);
  OnDevice<std::int32_t> segments(queue_, list);
  run(queue_, AttentionArgs{.q = rows.view(),
                            .k = rows.view(),
                            .v = rows.view(),
                            .segments = segments.view(),
                            .heads = 2,
                            .sequence = 64,
                            .out = result.view(),
                            .log_sum_exp = log_sum_exp.view()});
  run(queue_, AttentionBackwardArgs{.q = rows.view(),
                                    .k = rows.view(),
                                    .v = rows.view(),
                                    .out = result.view(),
                                    .log_sum_exp = log_sum_exp.view(),
                                    .dout = rows.view(),
                                    .segments = segments.view(),
                                    .heads = 2,
                                    .sequence = 64,
                                    .dq = queries.view(),
                                    .dk = keys.view(),
                                    .dv = values.view()});
  for (auto* tensor : {&result, &queries, &keys, &values}) tensor->fetch();
  for (std::int64_t row = 0; row < 80; ++row) {
    EXPECT_EQ(to_double(out(row, 0)), row < 64 ? 1.0 : 0.0) << row;  // a mean of ones
    EXPECT_EQ(to_double(dv(row, 63)), row >= 8 && row < 72 ? 1.0 : 0.0) << row;
    EXPECT_NEAR(to_double(dq(row, 5)), 0.0, row < 64 ? 1e-4 : 0.0) << row;
    EXPECT_NEAR(to_double(dk(row, 5)), 0.0, row >= 8 && row < 72 ? 1e-4 : 0.0) << row;
  }
}

}  // namespace
}  // namespace tilewave

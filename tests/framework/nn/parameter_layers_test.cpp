// Layers in one piece, shares of it that together are all, and what a rank keeps of what is written.
#include "framework/nn/parameter_layers.h"

#include <set>

#include "framework/nn/parameters.h"
#include "framework/optimizer/adamw.h"
#include "kernels/gemm/tiling.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

constexpr int kRanks = 3;

// A model of two layers of one make and an embedding with padding rows; nothing that ranks say to each other.
struct OneOfRanks {
  OneOfRanks(int rank, Precision precision, Sharding sharding)
      : context(make_cpu_queue(1), probe_cpu(1),
                {.precision = precision, .ranks = {.rank = rank, .count = kRanks, .mpi = {}, .nccl = {}}, .sharding = sharding}),
        parameters(context, 7, ParameterStorage::by_layer) {
    parameters.add({.name = "embedding.token.weight", .shape = {37, 19}, .padded_rows = 40, .initialization = {.deviation = 1.0}});
    for (const std::string layer : {"decoder.0", "decoder.1"}) {
      parameters.add({.name = layer + ".ffn.weight", .shape = {50, 19}, .initialization = {.deviation = 1.0}});
      parameters.add(
          {.name = layer + ".ffn.bias", .shape = {1, 50}, .kind = ParameterKind::bias, .initialization = {.mean = 2.0, .deviation = 1.0}});
    }
    parameters.place();
  }
  Context context;
  Parameters parameters;
};

std::vector<double> elements(Context& context, const Tensor& tensor) { return read_elements(context, tensor); }

TEST(ParameterLayers, AreOfTheirNamesFirstParts) {
  OneOfRanks rank(0, Precision::fp64, Sharding::none);
  const std::vector<ParameterLayer>& layers = rank.parameters.layers();
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers[0].name, "embedding.token");
  EXPECT_EQ(layers[1].name, "decoder.0");
  EXPECT_EQ(layers[1].places.size(), 2u);
  EXPECT_EQ(layers[1].places[1].parameter->spec.name, "decoder.0.ffn.bias");
  EXPECT_EQ(layers[1].places[1].index, 2u);
  EXPECT_EQ(rank.parameters.all()[2].variable.gradient().data(),
            static_cast<const double*>(layers[1].gradients.data()) + layers[1].places[1].first);
}

// Whatever the types, every share begins at a multiple of kAlignment bytes, and every element is in one run of one share.
TEST(ParameterLayers, SharesAreAlikeAndTogetherAll) {
  for (const Precision precision : {Precision::fp64, Precision::fp32, Precision::bf16}) {
    OneOfRanks rank(1, precision, Sharding::optimizer);
    for (const ParameterLayer& layer : rank.parameters.layers()) {
      std::int64_t in_runs = 0, of_parameters = 0;
      for (const ParameterPlace& place : layer.places) of_parameters += place.elements;
      for (int other = 0; other < kRanks; ++other) {
        const ShareRange share = share_of(layer, rank.context.ranks(), other);
        EXPECT_EQ(share.first, other * share.count);
        EXPECT_EQ(share.first * size_of(rank.context.precision().compute) % kAlignment, 0);
        for (const ShareRun& run : runs_of(layer, share)) {
          EXPECT_GE(run.first, 0);
          EXPECT_LE(run.first + run.count, share.count);
          in_runs += run.count;
        }
      }
      EXPECT_EQ(in_runs, of_parameters) << layer.name;
      EXPECT_EQ(layer.elements % kRanks, 0);
    }
  }
}

// All shares of a layer, side by side, are what a rank alone has; and every rank computes with all of it, rounded as one alone does.
TEST(ParameterLayers, RanksBeginWithWhatOneBeginsWith) {
  for (const Precision precision : {Precision::fp64, Precision::fp32, Precision::bf16}) {
    Context alone(make_cpu_queue(1), probe_cpu(1), {.precision = precision});
    Parameters whole(alone, 7);
    std::vector<std::unique_ptr<OneOfRanks>> ranks;
    for (int rank = 0; rank < kRanks; ++rank) ranks.push_back(std::make_unique<OneOfRanks>(rank, precision, Sharding::gradients));
    for (const Parameter& parameter : ranks[0]->parameters.all()) whole.add(parameter.spec);
    const std::vector<ParameterLayer>& layers = ranks[0]->parameters.layers();
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      std::vector<double> flat;
      for (const auto& rank : ranks) {
        const std::vector<double> share = elements(rank->context, rank->parameters.layers()[layer].master_share);
        flat.insert(flat.end(), share.begin(), share.end());
      }
      double sum = 0.0, of_parameters = 0.0;
      for (const double value : flat) sum += std::abs(value);
      for (const ParameterPlace& place : layers[layer].places) {
        const HostMatrix master(alone, whole.all()[place.index].master), compute(alone, whole.all()[place.index].variable.value());
        const Tensor& own = ranks[2]->parameters.all()[place.index].variable.value();
        const HostMatrix own_compute(ranks[2]->context, own);
        for (std::int64_t row = 0; row < own.rows(); ++row) {
          for (std::int64_t column = 0; column < own.cols(); ++column) {
            EXPECT_EQ(flat[static_cast<std::size_t>(place.first + row * place.pitch + column)], master(row, column));
            EXPECT_EQ(own_compute(row, column), compute(row, column));
            of_parameters += std::abs(master(row, column));
          }
        }
      }
      EXPECT_NEAR(sum, of_parameters, 1e-9 * sum);  // zero lies between them
    }
  }
}

// A file's piece of a matrix, and of a vector, lands where it belongs and nowhere else.
TEST(ParameterLayers, AWrittenBlockReachesTheRanksThatHaveIt) {
  std::vector<double> written;
  for (int rank = 0; rank < kRanks; ++rank) {
    OneOfRanks own(rank, Precision::bf16, Sharding::optimizer);
    const std::vector<double> before = elements(own.context, own.parameters.layers()[1].master_share);
    own.parameters.master(1).write(own.context, {.first_row = 5, .rows = 30, .columns = 19},
                                   [](std::int64_t row, std::int64_t column) { return 100.0 + static_cast<double>(row * 19 + column); });
    own.parameters.master(2).write(own.context, {.first_row = 0, .rows = 1, .first_column = 7, .columns = 20},
                                   [](std::int64_t, std::int64_t column) { return 1000.0 + static_cast<double>(column); });
    const std::vector<double> after = elements(own.context, own.parameters.layers()[1].master_share);
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (after[i] != before[i]) written.push_back(after[i]);
    }
    const HostMatrix weight(own.context, own.parameters.all()[1].variable.value()),
        bias(own.context, own.parameters.all()[2].variable.value());
    EXPECT_EQ(weight(5, 0), 100.0);
    EXPECT_EQ(bias(0, 8), 1000.0);  // 1001 in bf16
    EXPECT_EQ(own.parameters.master(1).dtype(), DType::f32);
    expect_error([&] { (void)own.parameters.master(1).whole(); }, {"decoder.0.ffn.weight", "shares of ranks"});
  }
  std::vector<double> expected;
  for (int i = 0; i < 30 * 19; ++i) expected.push_back(100.0 + i);
  for (int i = 0; i < 20; ++i) expected.push_back(1000.0 + i);
  EXPECT_EQ(std::multiset<double>(written.begin(), written.end()), std::multiset<double>(expected.begin(), expected.end()));
}

// Layers of one make take turns in two pieces of memory, and no others.
TEST(ParameterLayers, GradientsInSharesTakeTurns) {
  OneOfRanks rank(0, Precision::fp32, Sharding::gradients);
  Parameters more(rank.context, 7, ParameterStorage::by_layer);
  for (int layer = 0; layer < 4; ++layer) more.add({.name = concat("decoder.", layer, ".ffn.weight"), .shape = {8, 8}});
  more.add({.name = "head.weight", .shape = {8, 8}, .padded_rows = 9});
  more.place();
  std::vector<const void*> memory;
  for (const ParameterLayer& layer : more.layers()) memory.push_back(layer.gradients.data());
  EXPECT_EQ(memory[0], memory[2]);
  EXPECT_EQ(memory[1], memory[3]);
  EXPECT_EQ((std::set<const void*>(memory.begin(), memory.end()).size()), 3u);
}

// Moments are in the same shares, and nobody has all of one.
TEST(ParameterLayers, MomentsAreInShares) {
  OneOfRanks rank(2, Precision::fp32, Sharding::optimizer);
  AdamW optimizer(rank.parameters, {});
  expect_error([&] { (void)optimizer.second_moment(1).whole(); }, {"decoder.0.ffn.weight", "shares of ranks"});
  EXPECT_EQ(optimizer.first_moment(1).dtype(), DType::f32);
}

TEST(ParameterLayers, RowsOfAVectorStayInIt) {
  Context context(make_cpu_queue(1), probe_cpu(1), {.precision = Precision::fp64});
  const Tensor flat = context.persistent({1, 20}, DType::f64);
  EXPECT_EQ(flat.as_rows(2, {3, 4}, 6).pitch(), 6);
  EXPECT_EQ(flat.as_rows(2, {3, 4}, 6).slice_rows(2, 1).data(), flat.columns(14, 1).data());
  expect_error([&] { (void)flat.as_rows(5, {3, 4}, 6); }, {"rows of shape", "[1, 20]"});
  expect_error([&] { (void)flat.as_rows(0, {3, 4}, 3); }, {"3 elements apart"});
}

}  // namespace
}  // namespace tilewave

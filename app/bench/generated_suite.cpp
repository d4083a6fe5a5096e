// Widths are those that published models have; numbers of tokens are drawn evenly by their logarithm, from a decoding step to a large
// batch.
#include "app/bench/generated_suite.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include "kernels/gemm/tiling.h"

namespace tilewave {
namespace {

using enum GemmForm;

// d_model of GPT-2, BERT, T5, OPT, Llama, Qwen and Transformers of the first papers.
constexpr std::int64_t kWidths[] = {256,  384,  512,  576,  640,  768,  896,  1024, 1152, 1280,
                                    1536, 1600, 2048, 2304, 2560, 2816, 3072, 3584, 4096, 5120};
constexpr std::int64_t kVocabularies[] = {32000, 32128, 33712, 37000, 50304, 51200, 65536, 100352, 128256, 151936};
constexpr std::int64_t kUnalignedVocabularies[] = {28996, 30522, 33708, 50257, 50265, 119547};
constexpr GemmForm kDrawnForms[] = {forward, dgrad, wgrad, forward_gelu, dgrad_gelu, wgrad_bias, wgrad_accumulate};
constexpr double kMaxFlops = 4e12;  // some 6 ms on an H100: the suite is to end within minutes

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}

  // Evenly from 0 to below `count`, as no standard library's distribution promises it.
  std::int64_t below(std::int64_t count) { return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(count)); }
  template <class T, std::size_t kCount>
  T one_of(const T (&all)[kCount]) {
    return all[static_cast<std::size_t>(below(kCount))];
  }
  // Evenly by its logarithm.
  std::int64_t between(std::int64_t least, std::int64_t most) {
    const double fraction = static_cast<double>(engine_() >> 11) * 0x1p-53;
    return std::llround(static_cast<double>(least) * std::pow(static_cast<double>(most) / static_cast<double>(least), fraction));
  }

 private:
  std::mt19937_64 engine_;
};

std::int64_t hidden_width(Draw& draw, std::int64_t width) {
  switch (draw.below(4)) {
    case 0:
      return round_up(8 * width / 3, 64);  // swiglu's
    case 1:
      return round_up(7 * width / 2, 256);
    default:
      return 4 * width;
  }
}

// An attention's projection, all three of q, k and v in one, a grouped k and v, either layer of a feed-forward network, or a vocabulary's.
Layer whole_layer(Draw& draw) {
  const std::int64_t width = draw.one_of(kWidths);
  switch (draw.below(6)) {
    case 0:
      return {.out = width, .in = width};
    case 1:
      return {.out = 3 * width, .in = width};
    case 2:
      return {.out = round_up(width / 4, 64), .in = width};
    case 3:
      return {.out = hidden_width(draw, width), .in = width};
    case 4:
      return {.out = width, .in = hidden_width(draw, width)};
    default:
      return {.out = draw.one_of(kVocabularies), .in = width};
  }
}

GemmForm form_of(Draw& draw, const Layer& layer) {
  const GemmForm form = draw.one_of(kDrawnForms);
  const bool vocabulary = layer.out > 8 * layer.in;
  if (vocabulary && form == forward_gelu) return forward;
  if (vocabulary && form == dgrad_gelu) return dgrad;
  return form;
}

// So many tokens that the layer takes no longer than it may.
std::int64_t tokens_of(Draw& draw, const Layer& layer) {
  const auto most = static_cast<std::int64_t>(kMaxFlops / (2.0 * static_cast<double>(layer.out) * static_cast<double>(layer.in)));
  return draw.between(64, std::clamp<std::int64_t>(most, 128, 65536));
}

GemmCase aligned_case(Draw& draw) {
  Layer layer = whole_layer(draw);
  layer.tokens = round_up(tokens_of(draw, layer), 8);
  return {.layer = layer, .form = form_of(draw, layer), .pitch = draw.below(2) == 0 ? PitchPolicy::packed : PitchPolicy::aligned};
}

// Rows that start anywhere: of a vocabulary or a hidden layer that is no multiple of eight, or of tokens beside which they lie across K.
GemmCase unaligned_case(Draw& draw) {
  for (;;) {
    Layer layer = whole_layer(draw);
    switch (draw.below(3)) {
      case 0:
        layer.out = draw.one_of(kUnalignedVocabularies);
        break;
      case 1:
        layer.out = 8 * layer.in / 3 / 2 * 2 + draw.below(2);  // 10,922 of 4,096
        break;
      default:
        layer.in += 1 + draw.below(7);
    }
    if (layer.out % 8 == 0 && layer.in % 8 == 0) continue;
    layer.tokens = tokens_of(draw, layer);
    return {.layer = layer, .form = form_of(draw, layer), .pitch = PitchPolicy::packed};
  }
}

// A few tokens of a decoding step, a few outputs (a classifier, a router of experts, a score) or a few inputs.
GemmCase narrow_case(Draw& draw) {
  constexpr std::int64_t kFew[] = {1, 2, 4, 8, 16};
  Layer layer = {.out = draw.one_of(kWidths), .in = draw.one_of(kWidths)};
  const std::int64_t few = draw.one_of(kFew);
  layer.tokens = round_up(draw.between(512, 16384), 8);
  switch (draw.below(3)) {
    case 0:
      layer.tokens = few;
      break;
    case 1:
      layer.out = few;
      break;
    default:
      layer.in = few;
  }
  constexpr GemmForm kPlain[] = {forward, dgrad, wgrad};
  return {.layer = layer, .form = draw.one_of(kPlain), .pitch = PitchPolicy::aligned};
}

}  // namespace

GemmSuite generated_suite(std::uint64_t seed) {
  Draw draw(seed);
  GemmSuite suite;
  const auto add_all = [&](GemmClaim claim, int count, auto&& one) {
    suite.claims.push_back(std::move(claim));
    for (int i = 0; i < count; ++i) suite.items.push_back({.ours = one(i), .claim = suite.claims.size() - 1});
  };
  add_all({.name = "generated, rows of whole 16 bytes", .mean = 1.03, .least = 0.93}, kGeneratedAligned,
          [&](int) { return aligned_case(draw); });
  add_all({.name = "generated, rows that start anywhere", .mean = 2.0}, kGeneratedUnaligned, [&](int) { return unaligned_case(draw); });
  const std::vector<GemmCase> wide = {{.layer = {.out = 11008, .in = 4096, .tokens = 2000}, .form = forward},
                                      {.layer = {.out = 11008, .in = 4096, .tokens = 2000}, .form = dgrad},
                                      {.layer = {.out = 11008, .in = 4096, .tokens = 2000}, .form = wgrad},
                                      {.layer = {.out = 150000, .in = 900, .tokens = 2048}, .form = forward},
                                      {.layer = {.out = 150000, .in = 900, .tokens = 2048}, .form = dgrad},
                                      {.layer = {.out = 150000, .in = 900, .tokens = 2048}, .form = wgrad}};
  add_all({.name = "wide layers", .mean = 1.0}, static_cast<int>(wide.size()), [&](int i) { return wide[static_cast<std::size_t>(i)]; });
  add_all({.name = "1 to 16 outputs, inputs or tokens", .mean = 0.95}, kGeneratedNarrow, [&](int) { return narrow_case(draw); });
  return suite;
}

std::uint64_t parse_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const bool digits = std::ranges::all_of(text, [](char one) { return '0' <= one && one <= '9'; });
  const auto read = std::from_chars(text.data(), end, seed, text.size() == 8 || !digits ? 16 : 10);
  TW_CHECK_INPUT(!text.empty() && read.ec == std::errc() && read.ptr == end, "--seed ", text,
                 " is no number, nor the eight hexadecimal digits that a commit begins with.");
  return seed;
}

}  // namespace tilewave

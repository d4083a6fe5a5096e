#include "app/options/literals.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include "kernels/gemm/forced_gemm.h"
#include "models/recipe/recipe.h"

namespace tilewave {
namespace {

constexpr std::int64_t kNumbers = std::int64_t{1} << 31;  // below which a size is
constexpr std::int64_t kMaxValues = 10000;                // of a range

// Numbers from 1 on with these words between them, and nothing behind.
template <std::size_t N>
std::optional<std::array<std::int64_t, N>> numbers_in(std::string_view text, const std::array<std::string_view, N - 1>& between) {
  std::array<std::int64_t, N> numbers{};
  for (std::size_t i = 0; i < N; ++i) {
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), numbers[i]);
    if (error != std::errc() || numbers[i] < 1 || numbers[i] >= kNumbers) return {};
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    if (i == N - 1) continue;
    if (!text.starts_with(between[i])) return {};
    text.remove_prefix(between[i].size());
  }
  if (!text.empty()) return {};
  return numbers;
}

Layer countable(const Literal& literal, const Layer& layer) {
  const double products = static_cast<double>(layer.out) * static_cast<double>(layer.in) * static_cast<double>(layer.tokens);
  TW_CHECK_INPUT(products < 0x1p60, literal.option, " ", literal.text,
                 ": has more multiply-adds than a computer does in a year; ask for fewer.");
  return layer;
}

}  // namespace

Layer layer_of(const Literal& literal) {
  const auto sizes = numbers_in<3>(literal.text, {"<-", "@"});
  TW_CHECK_INPUT(sizes, literal.option, " ", literal.text, ": a layer is written out<-in@tokens, for example 512<-128@1536.");
  const auto [out, in, tokens] = *sizes;
  return countable(literal, {.out = out, .in = in, .tokens = tokens});
}

Layer gemm_of(const Literal& literal) {
  const auto sizes = numbers_in<3>(literal.text, {"x", "x"});
  TW_CHECK_INPUT(sizes, literal.option, " ", literal.text, ": a GEMM is written MxNxK, for example 8192x128x8192.");
  const auto [m, n, k] = *sizes;
  return countable(literal, {.out = m, .in = k, .tokens = n});
}

Tile tile_of(const Literal& literal) {
  const std::optional<Tile> tile = parse_tile(literal.text);
  TW_CHECK_INPUT(tile, literal.option, " ", literal.text, ": a tile is written MxN, for example 256x128.");
  return *tile;
}

Matrix matrix_of(const Literal& literal) {
  const auto sizes = numbers_in<2>(literal.text, {"x"});
  TW_CHECK_INPUT(sizes, literal.option, " ", literal.text, ": a matrix is written rows x columns, for example 65536x1024.");
  const auto [rows, cols] = *sizes;
  return {.rows = rows, .cols = cols};
}

namespace {

constexpr std::string_view kConvolutionForm =
    ": a convolution is written NxHxWxC->K,RxS[,stride=1][,pad=0][,dilation=1], with 2x1 for a number down and another one across and "
    "pad=same for as many pixels as go in, for example 256x56x56x64->128,3x3,pad=same.";

// A number down and another one across, "2x1", or one for both.
std::optional<std::pair<std::int64_t, std::int64_t>> down_and_across(std::string_view text, std::int64_t least) {
  std::array<std::int64_t, 2> numbers{};
  for (std::size_t i = 0;; ++i) {
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), numbers[i]);
    if (error != std::errc() || numbers[i] < least || numbers[i] >= kNumbers) return {};
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    if (text.empty()) return std::pair{numbers[0], numbers[i]};
    if (i == 1 || !text.starts_with('x')) return {};
    text.remove_prefix(1);
  }
}

// What stands behind the filter: "stride=2".
void read_convolution_option(const Literal& literal, std::string_view option, ConvolutionLayer& convolution, bool& is_same) {
  ConvolutionFilter& f = convolution.filter;
  const std::string_view key = option.substr(0, option.find('='));
  const std::string_view value = option.substr(std::min(option.size(), key.size() + 1));
  TW_CHECK_INPUT(!key.starts_with("group") && !key.starts_with("depthwise"), literal.option, " ", literal.text,
                 ": grouped and depthwise convolutions are not here, and every output has all channels; leave out ", option, ".");
  is_same = is_same || option == "pad=same";
  const auto numbers = option == "pad=same" ? std::pair<std::int64_t, std::int64_t>{0, 0} : down_and_across(value, key == "pad" ? 0 : 1);
  TW_CHECK_INPUT(numbers && (key == "stride" || key == "pad" || key == "dilation"), literal.option, " ", literal.text, kConvolutionForm);
  if (key == "stride") std::tie(f.stride_down, f.stride_across) = *numbers;
  if (key == "pad") std::tie(f.padding_down, f.padding_across) = *numbers;
  if (key == "dilation") std::tie(f.dilation_down, f.dilation_across) = *numbers;
}

}  // namespace

ConvolutionLayer convolution_of(const Literal& literal) {
  std::string_view rest = literal.text;
  const auto next = [&rest] {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    return part;
  };
  const auto sizes = numbers_in<5>(next(), {"x", "x", "x", "->"});
  const auto filter = numbers_in<2>(next(), {"x"});
  TW_CHECK_INPUT(sizes && filter && !literal.text.ends_with(','), literal.option, " ", literal.text, kConvolutionForm);
  const auto [count, height, width, channels, outputs] = *sizes;
  ConvolutionLayer convolution{.images = {.count = count, .channels = channels, .height = height, .width = width},
                               .filter = {.height = (*filter)[0], .width = (*filter)[1]},
                               .outputs = outputs};
  ConvolutionFilter& f = convolution.filter;
  bool is_same = false;
  while (!rest.empty()) read_convolution_option(literal, next(), convolution, is_same);
  if (is_same) {
    TW_CHECK_INPUT(f.effective_height() % 2 == 1 && f.effective_width() % 2 == 1, literal.option, " ", literal.text,
                   ": pad=same pads by as much on either side, and the filter reaches over ", f.effective_height(), " x ",
                   f.effective_width(), ", an even number; take an odd filter, or say pad=", (f.effective_height() - 1) / 2, "x",
                   (f.effective_width() - 1) / 2, ".");
    f.padding_down = (f.effective_height() - 1) / 2, f.padding_across = (f.effective_width() - 1) / 2;
  }
  const std::string refusal = refuse_convolution(convolution.images, f);
  TW_CHECK_INPUT(refusal.empty(), literal.option, " ", literal.text, ": ", refusal);
  const std::int64_t rows = std::max(convolution.images.rows(), convolved(convolution.images, f, 1).rows());
  countable(literal, {.out = outputs, .in = f.taps() * channels, .tokens = rows});
  return convolution;
}

std::vector<std::int64_t> range_of(const Literal& literal) {
  const auto range = numbers_in<3>(literal.text, {":", ":"});
  const auto [first, last, step] = range.value_or(std::array<std::int64_t, 3>{1, 0, 1});
  TW_CHECK_INPUT(last >= first && (last - first) / step < kMaxValues, literal.option, " ", literal.text,
                 ": a range is written first:last:step, at most ", kMaxValues, " numbers below 2^31, for example 96:3072:96.");
  std::vector<std::int64_t> values;
  for (std::int64_t value = first; value <= last; value += step) values.push_back(value);
  return values;
}

namespace {

// How sizes are written of which one is swept.
struct SweptForm {
  std::array<std::string_view, 2> between;
  std::array<std::string_view, 3> names;
  std::string_view example;
};

SweptLayer swept_of(const Literal& literal, const SweptForm& form, Layer (*layer)(const Literal&)) {
  std::array<std::string_view, 3> parts;
  std::string_view rest = literal.text;
  bool split = true;
  for (std::size_t i = 0; i < form.between.size(); ++i) {
    const std::size_t end = rest.find(form.between[i]);
    split = split && end != std::string_view::npos;
    parts[i] = rest.substr(0, end);
    rest.remove_prefix(split ? end + form.between[i].size() : rest.size());
  }
  parts.back() = rest;
  std::size_t ranges = 0, which = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].find(':') == std::string_view::npos) continue;
    ++ranges;
    which = i;
  }
  TW_CHECK_INPUT(split && ranges == 1, literal.option, " ", literal.text,
                 ": one of its three sizes is a range, first:last:step, for example ", form.example, ".");
  SweptLayer swept = {.axis = form.names[which], .at = range_of({literal.option, parts[which]}), .layers = {}};
  for (const std::int64_t size : swept.at) {
    const std::string number = std::to_string(size);
    std::array<std::string_view, 3> sizes = parts;
    sizes[which] = number;
    swept.layers.push_back(layer({literal.option, concat(sizes[0], form.between[0], sizes[1], form.between[1], sizes[2])}));
  }
  return swept;
}

}  // namespace

SweptLayer swept_layer_of(const Literal& literal) {
  return swept_of(literal, {.between = {"<-", "@"}, .names = {"out", "in", "tokens"}, .example = "4096<-1024@256:8192:256"}, layer_of);
}

SweptLayer swept_gemm_of(const Literal& literal) {
  return swept_of(literal, {.between = {"x", "x"}, .names = {"M", "N", "K"}, .example = "2304x8:6400:8x4096"}, gemm_of);
}

}  // namespace tilewave

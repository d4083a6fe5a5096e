#include "framework/nn/parameter_layers.h"

#include <algorithm>

#include "kernels/gemm/tiling.h"

namespace tilewave {
namespace {

// "decoder.3.ffn.up.weight" -> "decoder.3"; "embedding.weight" -> "embedding".
std::string layer_of(const std::string& name) {
  const std::size_t first = name.find('.'), second = first == std::string::npos ? first : name.find('.', first + 1);
  return name.substr(0, second != std::string::npos ? second : first);
}

// Of the narrowest type as many elements as make kAlignment bytes.
std::int64_t aligned_elements(const std::vector<DType>& types) {
  std::int64_t elements = 1;
  for (const DType dtype : types) elements = std::max(elements, kAlignment / size_of(dtype));
  return elements;
}

}  // namespace

ShareRange share_of(const ParameterLayer& layer, const Communicator& ranks, int rank) {
  const std::int64_t count = layer.elements / ranks.count;
  return {.first = rank * count, .count = count};
}

Tensor rows_in(const Tensor& flat, const ParameterPlace& place) {
  return flat.as_rows(place.first, place.parameter->variable.shape(), place.pitch);
}

std::vector<ShareRun> runs_of(const ParameterLayer& layer, const ShareRange& share) {
  std::vector<ShareRun> runs;
  for (const ParameterPlace& place : layer.places) {
    const std::int64_t begin = std::max(place.first, share.first);
    const std::int64_t end = std::min(place.first + place.elements, share.first + share.count);
    if (begin < end) runs.push_back({.parameter = place.parameter, .first = begin - share.first, .count = end - begin});
  }
  return runs;
}

std::vector<ParameterLayer> layers_of(Context& context, const std::deque<Parameter>& parameters, const std::vector<DType>& types) {
  const auto pitch_of = [&](const Shape& shape) {
    std::int64_t pitch = shape.cols;
    if (shape.rows == 1 || shape.cols == 1) return pitch;
    for (const DType dtype : types) pitch = std::max(pitch, context.pitch_of(shape.cols, dtype));
    return pitch;
  };
  const std::int64_t granule = aligned_elements(types);
  std::vector<ParameterLayer> layers;
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    const Parameter& parameter = parameters[index];
    const std::string name = layer_of(parameter.spec.name);
    auto layer = std::ranges::find(layers, name, &ParameterLayer::name);
    if (layer == layers.end()) {
      layers.emplace_back().name = name;
      layer = std::prev(layers.end());
    }
    const Shape& shape = parameter.variable.shape();
    const std::int64_t pitch = pitch_of(shape);
    layer->places.push_back(
        {.parameter = &parameter, .index = index, .first = layer->elements, .pitch = pitch, .elements = shape.rows * pitch});
    layer->elements += round_up(shape.rows * pitch, granule);
  }
  for (ParameterLayer& layer : layers) layer.elements = round_up(layer.elements, context.ranks().count * granule);
  return layers;
}

}  // namespace tilewave

// Caches are appended to in place; where hypotheses change places, rows are copied.
#include "models/decoding/decode_launches.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "framework/data/packing.h"
#include "framework/tensor/host_tensor.h"
#include "kernels/ops/add.h"
#include "kernels/ops/fill.h"

namespace tilewave {
namespace {

Tensor ids_tensor(Context& context, const std::vector<std::int32_t>& ids) {
  const Tensor tensor = context.tensor({1, static_cast<std::int64_t>(ids.size())}, DType::i32);  // [1, tokens]
  write_ids(context, tensor, ids);
  return tensor;
}

Tensor segments_tensor(Context& context, const std::vector<std::int32_t>& segments) {
  const Tensor tensor = context.tensor({static_cast<std::int64_t>(segments.size()) / 4, 4}, DType::i32);
  write_ids(context, tensor, segments);
  return tensor;
}

std::vector<std::int32_t> positions_from(std::int64_t first, std::int64_t count) {
  std::vector<std::int32_t> positions(static_cast<std::size_t>(count));
  std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(first));
  return positions;
}

struct CacheShape {
  std::size_t layers = 0;
  std::int64_t sequences = 0, capacity = 0, features = 0;
};

std::vector<KeyValueCache> caches_of(Context& context, const CacheShape& shape) {
  std::vector<KeyValueCache> caches;
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    const Tensor kv = context.tensor({shape.sequences * shape.capacity, shape.features}, context.precision().activation);
    context.launch(FillArgs{.y = kv.view(), .value = 0.0});  // rows that are not seen yet must be finite
    caches.push_back({.kv = kv, .capacity = shape.capacity});
  }
  return caches;
}

// What each cached sequence's new tokens see: all that is cached, and themselves.
Tensor self_segments(Context& context, std::int64_t sequences, std::int64_t capacity, const DecodeStep& step) {
  std::vector<std::int32_t> segments;
  for (std::int64_t sequence = 0; sequence < sequences; ++sequence) {
    for (const std::int64_t value : {sequence * step.tokens, step.tokens, sequence * capacity, step.position + step.tokens}) {
      segments.push_back(static_cast<std::int32_t>(value));
    }
  }
  return segments_tensor(context, segments);
}

// Row r of the caches becomes what row parents[r] was. In place where rows only move to the front, else through the spare ones.
void reorder(Context& context, std::vector<KeyValueCache>& caches, std::vector<KeyValueCache>& spare,
             const std::vector<std::int64_t>& parents, std::int64_t length) {
  const bool to_the_front = std::ranges::adjacent_find(parents, std::ranges::greater_equal()) == parents.end();
  const std::vector<KeyValueCache>& target = to_the_front ? caches : spare;
  for (std::size_t layer = 0; layer < caches.size(); ++layer) {
    const std::int64_t capacity = caches[layer].capacity;
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(parents.size()); ++row) {
      const std::int64_t parent = parents[static_cast<std::size_t>(row)];
      if (to_the_front && parent == row) continue;
      context.launch(AddArgs{.a = caches[layer].kv.slice_rows(parent * capacity, length).view(),
                             .b = {},
                             .y = target[layer].kv.slice_rows(row * capacity, length).view()});
    }
  }
  if (!to_the_front) std::swap(caches, spare);
}

}  // namespace

SourceGroup::SourceGroup(Transformer& model, std::span<const DecodedSource> sources, Shape shape)
    : context_(model.context()),
      transformer_(std::get<EncoderDecoder>(model.architecture())),
      cache_features_(cache_features(model.config())),
      shape_(shape),
      rows_sources_(sources.size()) {
  std::vector<std::int32_t> ids, positions;
  for (const DecodedSource& source : sources) {
    first_key_.push_back(static_cast<std::int32_t>(positions.size()));
    keys_.push_back(static_cast<std::int32_t>(source.rows));
    ids.insert(ids.end(), source.ids.begin(), source.ids.end());
    const std::vector<std::int32_t> own = positions_from(0, source.rows);
    positions.insert(positions.end(), own.begin(), own.end());
  }
  BatchTensors batch;
  if (const std::optional<SeenPictures>& seen = model.data().picture) {
    batch.pixels = pixels_of(sources, *seen);
  } else {
    batch.source_ids = ids_tensor(context_, ids);
  }
  batch.source_positions = ids_tensor(context_, positions);
  batch.source_segments = segments_tensor(context_, attention_segments({.lengths = keys_}, {.lengths = keys_}, std::ssize(keys_)));
  keys_and_values_ = transformer_.cross_keys_and_values(context_, transformer_.encode(context_, batch, 0, {}));
  caches_ = make_caches(sources.size());
  if (shape_.beams > 1) spare_ = make_caches(sources.size());
  std::vector<std::size_t> all(sources.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  keep({}, all);
}

Pixels SourceGroup::pixels_of(std::span<const DecodedSource> sources, const SeenPictures& seen) {
  const Pixels pixels = make_step_pixels(context_, seen, std::ssize(sources));
  if (context_.tracing()) return pixels;
  std::vector<std::uint8_t> all;
  for (const DecodedSource& source : sources) all.insert(all.end(), source.pixels.begin(), source.pixels.end());
  upload_pixels(context_, all, pixels);
  return pixels;
}

std::vector<KeyValueCache> SourceGroup::make_caches(std::size_t sources) {
  return caches_of(context_, {.layers = transformer_.decoder_layers(),
                              .sequences = static_cast<std::int64_t>(sources) * shape_.beams,
                              .capacity = shape_.capacity,
                              .features = cache_features_});
}

Tensor SourceGroup::logits(const std::vector<std::int32_t>& tokens, std::int64_t position) {
  step_.position = position;
  step_.self_segments = self_segments(context_, std::ssize(tokens), shape_.capacity, step_);
  step_.position_ids = ids_tensor(context_, std::vector<std::int32_t>(tokens.size(), static_cast<std::int32_t>(position)));
  return transformer_.decode(context_, ids_tensor(context_, tokens), step_, caches_, keys_and_values_).value();
}

void SourceGroup::keep(const std::vector<std::int64_t>& parents, const std::vector<std::size_t>& sources) {
  reorder(context_, caches_, spare_, parents, step_.position + 1);
  if (step_.cross_segments && sources.size() == rows_sources_) return;
  rows_sources_ = sources.size();
  const auto beams = static_cast<std::int32_t>(shape_.beams);
  std::vector<std::int32_t> segments;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    segments.insert(segments.end(), {static_cast<std::int32_t>(i) * beams, beams, first_key_[sources[i]], keys_[sources[i]]});
  }
  step_.cross_segments = segments_tensor(context_, segments);
}

CachedText::CachedText(Transformer& model, std::int64_t capacity)
    : context_(model.context()),
      transformer_(std::get<DecoderOnly>(model.architecture())),
      caches_(caches_of(
          context_,
          {.layers = transformer_.decoder_layers(), .sequences = 1, .capacity = capacity, .features = cache_features(model.config())})) {}

Tensor CachedText::logits(std::span<const std::int32_t> tokens) {
  step_.tokens = std::ssize(tokens);
  step_.self_segments = self_segments(context_, 1, caches_.front().capacity, step_);
  const Tensor ids = ids_tensor(context_, {tokens.begin(), tokens.end()});  // [1, tokens]
  step_.position_ids = ids_tensor(context_, positions_from(step_.position, step_.tokens));
  const Tensor all = transformer_.decode(context_, ids, step_, caches_).value();  // [tokens, V_padded]
  step_.position += step_.tokens;
  return all.slice_rows(all.rows() - 1, 1);
}

}  // namespace tilewave

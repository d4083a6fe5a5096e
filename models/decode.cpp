// Decoding: the device computes logits of new tokens against cached keys and values; the host ranks, draws and reorders.
#include "models/decode.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "framework/data/packing.h"
#include "framework/data/tokenizer.h"
#include "framework/host_tensor.h"
#include "framework/random.h"
#include "kernels/add.h"
#include "kernels/fill.h"
#include "kernels/memory.h"
#include "models/beam_search.h"

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

std::vector<KeyValueCache> make_caches(Context& context, std::size_t layers, std::int64_t sequences, std::int64_t capacity,
                                       std::int64_t d_model) {
  std::vector<KeyValueCache> caches;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const Tensor kv = context.tensor({sequences * capacity, 2 * d_model}, context.precision().activation);
    context.launch(FillArgs{.y = kv.view(), .value = 0.0});  // rows that are not seen yet must be finite
    caches.push_back({.kv = kv, .capacity = capacity});
  }
  return caches;
}

// What each cached sequence's new tokens see: all that is cached, and themselves.
Tensor self_segments(Context& context, std::int64_t sequences, std::int64_t capacity, std::int64_t position, std::int64_t tokens) {
  std::vector<std::int32_t> segments;
  for (std::int64_t sequence = 0; sequence < sequences; ++sequence) {
    for (const std::int64_t value : {sequence * tokens, tokens, sequence * capacity, position + tokens}) {
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

std::int64_t used_positions(const ModelConfig& config, std::int64_t asked) {
  return asked > 0 ? std::min(asked, config.max_positions) : config.max_positions;
}

std::int64_t used_vocabulary(const ModelConfig& config, std::int64_t asked) {
  return asked > 0 ? std::min(asked, config.vocabulary) : config.vocabulary;
}

std::int64_t longest_target(const Transformer& model, const std::vector<std::int32_t>& source, const TranslateOptions& options) {
  return std::min(used_positions(model.config(), options.positions), 2 * static_cast<std::int64_t>(source.size()) + 16);
}

// What each source's hypotheses see: its keys, `count[i]` of them from `first[i]` on.
struct SourceKeys {
  std::vector<std::int32_t> first, count;
};

Tensor cross_segments(Context& context, const SourceKeys& keys, const std::vector<std::size_t>& sources, std::size_t beams) {
  std::vector<std::int32_t> segments;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    segments.insert(segments.end(), {static_cast<std::int32_t>(i * beams), static_cast<std::int32_t>(beams), keys.first[sources[i]],
                                     keys.count[sources[i]]});
  }
  return segments_tensor(context, segments);
}

// The non-empty sources of one group, decoded together; those whose search is done leave where rows change places anyway, as beams do, or
// half of them are done.
void translate_group(Transformer& model, std::span<const std::vector<std::int32_t>* const> sources, const TranslateOptions& options,
                     std::vector<std::vector<std::int32_t>*>& targets) {
  Context& context = model.context();
  const auto& transformer = std::get<EncoderDecoder>(model.architecture());
  const ModelConfig& config = model.config();
  const std::int64_t vocabulary = used_vocabulary(config, options.vocabulary);
  const auto beams = static_cast<std::size_t>(options.beams);

  // Encode once.
  std::vector<std::int32_t> ids, positions;
  SourceKeys keys;
  std::vector<BeamSearch> searches;
  std::int64_t capacity = 0;
  for (const std::vector<std::int32_t>* source : sources) {
    const auto length = static_cast<std::int64_t>(source->size());
    keys.first.push_back(static_cast<std::int32_t>(ids.size()));
    keys.count.push_back(static_cast<std::int32_t>(length));
    ids.insert(ids.end(), source->begin(), source->end());
    const std::vector<std::int32_t> own = positions_from(0, length);
    positions.insert(positions.end(), own.begin(), own.end());
    const std::int64_t longest = longest_target(model, *source, options);
    capacity = std::max(capacity, longest);
    searches.emplace_back(options.beams, options.length_penalty, vocabulary, longest);
  }
  BatchTensors batch;
  batch.source_ids = ids_tensor(context, ids);
  batch.source_positions = ids_tensor(context, positions);
  batch.source_segments = segments_tensor(context, attention_segments(keys.count, keys.count, std::ssize(keys.count)));
  const std::vector<Variable> keys_and_values = transformer.cross_keys_and_values(context, transformer.encode(context, batch, 0, {}));

  // One token of every hypothesis at a time.
  const auto caches_of_all = [&] {
    return make_caches(context, transformer.decoder_layers(), static_cast<std::int64_t>(sources.size() * beams), capacity, config.d_model);
  };
  std::vector<KeyValueCache> caches = caches_of_all();
  std::vector<KeyValueCache> spare = beams > 1 ? caches_of_all() : std::vector<KeyValueCache>();
  std::vector<std::size_t> searching(sources.size());  // which sources' hypotheses the rows are
  std::iota(searching.begin(), searching.end(), std::size_t{0});
  DecodeStep step{.cross_segments = cross_segments(context, keys, searching, beams)};
  for (step.position = 0; step.position < capacity; ++step.position) {
    const std::size_t rows = searching.size() * beams;
    std::vector<std::int32_t> last(rows);
    for (std::size_t row = 0; row < rows; ++row) last[row] = searches[searching[row / beams]].last(row % beams);
    step.self_segments = self_segments(context, static_cast<std::int64_t>(rows), capacity, step.position, 1);
    const Tensor position_ids = ids_tensor(context, std::vector<std::int32_t>(rows, static_cast<std::int32_t>(step.position)));
    const Tensor logits = transformer.decode(context, ids_tensor(context, last), position_ids, step, caches, keys_and_values).value();
    const std::vector<double> values = read_elements(context, logits);  // [rows, V_padded]

    std::vector<std::vector<std::int64_t>> beam_parents(searching.size());
    const auto columns = static_cast<std::size_t>(logits.cols());
    std::size_t still = 0;
    for (std::size_t i = 0; i < searching.size(); ++i) {
      BeamSearch& search = searches[searching[i]];
      beam_parents[i].resize(beams);
      std::iota(beam_parents[i].begin(), beam_parents[i].end(), std::int64_t{0});
      if (!search.done()) beam_parents[i] = search.advance(std::span(values).subspan(i * beams * columns, beams * columns), logits.cols());
      still += search.done() ? 0 : 1;
    }
    if (still == 0) break;
    const bool done_ones_leave = beams > 1 || 2 * still <= searching.size();
    std::vector<std::int64_t> parents;
    std::vector<std::size_t> next;
    for (std::size_t i = 0; i < searching.size(); ++i) {
      if (done_ones_leave && searches[searching[i]].done()) continue;
      next.push_back(searching[i]);
      for (const std::int64_t parent : beam_parents[i]) parents.push_back(static_cast<std::int64_t>(i * beams) + parent);
    }
    reorder(context, caches, spare, parents, step.position + 1);
    if (next.size() < searching.size()) step.cross_segments = cross_segments(context, keys, next, beams);
    searching = std::move(next);
  }
  for (std::size_t s = 0; s < searches.size(); ++s) *targets[s] = searches[s].take_best();
}

// What a hypothesis takes: cached keys and values, twice where beams change places, and its logits on the device and on the host.
std::int64_t bytes_of_row(Transformer& model, std::int64_t capacity, const TranslateOptions& options) {
  const ModelConfig& config = model.config();
  const std::int64_t size = size_of(model.context().precision().activation);
  const std::int64_t cached = capacity * config.decoder_layers * 2 * config.d_model * size;
  return (options.beams > 1 ? 2 : 1) * cached + config.vocabulary * (size + std::int64_t{sizeof(double)});
}

// What a source takes while it is encoded, and its keys and values in every layer.
std::int64_t bytes_of_source(Transformer& model, std::int64_t tokens) {
  const ModelConfig& config = model.config();
  return tokens * (6 * config.d_model + config.d_ff + 2 * config.d_model * config.decoder_layers) *
         size_of(model.context().precision().activation);
}

// What a group may take: as asked, or a quarter of what is free, at most a GiB; the rest is for what the layers compute.
std::int64_t group_bytes(Context& context, const TranslateOptions& options) {
  constexpr std::int64_t kMost = 1 << 30;
  if (options.bytes > 0) return options.bytes;
  return std::min(kMost, free_bytes(context.queue()).value_or(kMost) / 4);
}

std::int32_t draw(std::span<const double> logits, const GenerateOptions& options, std::int64_t vocabulary, Random& random) {
  std::vector<std::int32_t> order;
  for (std::int32_t id = 0; id < vocabulary; ++id) {
    if (may_produce(id)) order.push_back(id);
  }
  const auto logit = [&](std::int32_t id) { return logits[static_cast<std::size_t>(id)]; };
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return logit(a) > logit(b); });
  if (options.temperature == 0.0) return order.front();
  if (options.top_k > 0 && options.top_k < static_cast<std::int64_t>(order.size())) order.resize(static_cast<std::size_t>(options.top_k));
  std::vector<double> cumulative;
  double sum = 0.0;
  for (const std::int32_t id : order) cumulative.push_back(sum += std::exp((logit(id) - logit(order.front())) / options.temperature));
  const double point = sum * static_cast<double>(random.next() >> 11) * 0x1p-53;
  const auto chosen = std::upper_bound(cumulative.begin(), cumulative.end(), point) - cumulative.begin();
  return order[std::min(static_cast<std::size_t>(chosen), order.size() - 1)];
}

}  // namespace

std::vector<std::vector<std::int32_t>> translate(Transformer& model, std::span<const std::vector<std::int32_t>> sources,
                                                 const TranslateOptions& options) {
  TW_CHECK_INPUT(std::holds_alternative<EncoderDecoder>(model.architecture()), "a decoder_only model cannot translate; use generate.");
  TW_CHECK_INPUT(options.beams >= 1 && options.beams <= 1024, "the number of beams is ", options.beams, "; it must be from 1 to 1024.");
  const NoGradient scope(model.context());
  std::vector<std::vector<std::int32_t>> targets(sources.size());

  // Sources of like length together: a group decodes as long as its longest target.
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::int64_t positions = used_positions(model.config(), options.positions);
    TW_CHECK_INPUT(std::ssize(sources[i]) <= positions, "source ", i + 1, " has ", sources[i].size(), " tokens, but the model has ",
                   positions, " positions; split it into shorter lines.");
    if (!sources[i].empty()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return sources[a].size() < sources[b].size(); });
  const std::int64_t most_rows = std::max(options.rows, options.beams), most_bytes = group_bytes(model.context(), options);
  const auto fits = [&](std::size_t count, std::size_t last) {
    const std::int64_t capacity = longest_target(model, sources[last], options);  // sources before it are no longer
    const std::int64_t bytes = options.beams * bytes_of_row(model, capacity, options) + bytes_of_source(model, std::ssize(sources[last]));
    const auto many = static_cast<std::int64_t>(count);
    return many == 1 || (many * options.beams <= most_rows && many <= most_bytes / bytes);
  };
  for (std::size_t next = 0; next < order.size() && !options.interrupted();) {
    std::vector<const std::vector<std::int32_t>*> group_sources;
    std::vector<std::vector<std::int32_t>*> group_targets;
    for (; next < order.size() && fits(group_sources.size() + 1, order[next]); ++next) {
      group_sources.push_back(&sources[order[next]]);
      group_targets.push_back(&targets[order[next]]);
    }
    translate_group(model, group_sources, options, group_targets);
  }
  return targets;
}

void generate(Transformer& model, std::span<const std::int32_t> prompt, const GenerateOptions& options,
              const std::function<void(std::int32_t)>& token) {
  TW_CHECK_INPUT(std::holds_alternative<DecoderOnly>(model.architecture()),
                 "an encoder_decoder model cannot continue a text; use translate.");
  TW_CHECK_INPUT(options.temperature >= 0.0 && std::isfinite(options.temperature), "the temperature is ", options.temperature,
                 "; it must be 0 or above.");
  Context& context = model.context();
  const NoGradient scope(context);
  const auto& transformer = std::get<DecoderOnly>(model.architecture());
  const ModelConfig& config = model.config();
  const std::int64_t capacity = used_positions(config, options.positions), vocabulary = used_vocabulary(config, options.vocabulary);

  std::vector<std::int32_t> text(prompt.begin(), prompt.end());
  if (text.empty()) text.push_back(kBeginId);
  const std::vector<KeyValueCache> caches = make_caches(context, transformer.decoder_layers(), 1, capacity, config.d_model);
  Random random(random_key(options.seed));
  std::int64_t cached = 0;  // tokens of the text's end that the cache holds
  for (std::int64_t produced = 0; produced < options.tokens; ++produced) {
    // New tokens: all of a prompt, then one by one; where positions run out, the latter half starts anew.
    const auto length = static_cast<std::int64_t>(text.size());
    const bool restart = cached == 0 || cached >= capacity;
    const std::int64_t fresh = restart ? std::min(length, cached == 0 ? capacity : std::max<std::int64_t>(1, capacity / 2)) : 1;
    if (restart) cached = 0;
    const DecodeStep step{
        .position = cached, .tokens = fresh, .self_segments = self_segments(context, 1, capacity, cached, fresh), .cross_segments = {}};
    const Tensor ids = ids_tensor(context, {text.end() - fresh, text.end()});  // [1, fresh]
    const Tensor logits = transformer.decode(context, ids, ids_tensor(context, positions_from(cached, fresh)), step, caches).value();
    cached += fresh;

    const std::int32_t next = draw(read_elements(context, logits.slice_rows(logits.rows() - 1, 1)), options, vocabulary, random);
    if (next == kEndId) return;
    token(next);
    text.push_back(next);
    if (std::ssize(text) > 2 * capacity) text.erase(text.begin(), text.end() - capacity);  // nothing reads further back
  }
}

}  // namespace tilewave

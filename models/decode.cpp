// Decoding: the device computes logits of new tokens against cached keys and values; the host ranks, draws and reorders.
#include "models/decode.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "framework/data/packing.h"
#include "framework/data/tokenizer.h"
#include "framework/host_tensor.h"
#include "framework/random.h"
#include "kernels/add.h"
#include "kernels/fill.h"

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
    caches.push_back({.kv = kv, .sequences = sequences, .capacity = capacity});
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

// Row r of the caches becomes what row parents[r] was.
void reorder(Context& context, std::vector<KeyValueCache>& caches, std::vector<KeyValueCache>& spare,
             const std::vector<std::int64_t>& parents, std::int64_t length) {
  for (std::size_t layer = 0; layer < caches.size(); ++layer) {
    const std::int64_t capacity = caches[layer].capacity;
    for (std::size_t row = 0; row < parents.size(); ++row) {
      context.launch(AddArgs{.a = caches[layer].kv.slice_rows(parents[row] * capacity, length).view(),
                             .b = {},
                             .y = spare[layer].kv.slice_rows(static_cast<std::int64_t>(row) * capacity, length).view()});
    }
  }
  std::swap(caches, spare);
}

bool may_produce(std::int64_t id, std::int64_t vocabulary) { return id < vocabulary && (id >= kSpecialIds || id == kEndId); }

double log_sum_exp(std::span<const double> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

struct Hypothesis {
  std::vector<std::int32_t> ids;
  double log_probability = -std::numeric_limits<double>::infinity();
};

struct Candidate {
  double log_probability;
  std::int64_t beam;
  std::int32_t id;
};

// Beam search over the targets of one source; greedy with one beam.
class Beam {
 public:
  Beam(const TranslateOptions& options, std::int64_t vocabulary, std::int64_t longest)
      : options_(options), vocabulary_(vocabulary), longest_(longest), beams_(static_cast<std::size_t>(options.beams)) {
    beams_.front().log_probability = 0.0;
  }

  bool done() const { return done_; }
  std::int32_t last(std::size_t beam) const { return beams_[beam].ids.empty() ? kBeginId : beams_[beam].ids.back(); }

  // Extends every beam by one token; returns which former beam each new one continues.
  std::vector<std::int64_t> advance(std::span<const double> logits, std::int64_t columns) {
    std::vector<std::int64_t> parents(beams_.size());
    std::iota(parents.begin(), parents.end(), std::int64_t{0});
    if (done_) return parents;

    std::vector<Candidate> candidates;
    for (std::size_t beam = 0; beam < beams_.size(); ++beam) {
      if (!std::isfinite(beams_[beam].log_probability)) continue;
      const auto row = logits.subspan(beam * static_cast<std::size_t>(columns), static_cast<std::size_t>(vocabulary_));
      const double normalizer = log_sum_exp(row);
      for (std::int64_t id = 0; id < vocabulary_; ++id) {
        if (!may_produce(id, vocabulary_)) continue;
        candidates.push_back({beams_[beam].log_probability + row[static_cast<std::size_t>(id)] - normalizer,
                              static_cast<std::int64_t>(beam), static_cast<std::int32_t>(id)});
      }
    }
    // Twice as many as there are beams: at most half of them end here.
    const std::size_t kept = std::min(candidates.size(), 2 * beams_.size());
    std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(kept), candidates.end(),
                      [](const Candidate& a, const Candidate& b) {
                        return std::tie(b.log_probability, a.beam, a.id) < std::tie(a.log_probability, b.beam, b.id);
                      });

    std::vector<Hypothesis> next;
    for (std::size_t rank = 0; rank < kept && next.size() < beams_.size(); ++rank) {
      const Candidate& candidate = candidates[rank];
      Hypothesis hypothesis = beams_[static_cast<std::size_t>(candidate.beam)];
      hypothesis.log_probability = candidate.log_probability;
      if (candidate.id == kEndId) {
        if (rank < beams_.size()) finish(std::move(hypothesis));
        continue;
      }
      hypothesis.ids.push_back(candidate.id);
      parents[next.size()] = candidate.beam;
      next.push_back(std::move(hypothesis));
    }
    next.resize(beams_.size());
    beams_ = std::move(next);

    const auto length = static_cast<std::int64_t>(beams_.front().ids.size());
    const bool hopeless = finished_ >= options_.beams && best_score_ >= score(beams_.front().log_probability, longest_);
    if (length >= longest_ || hopeless || !std::isfinite(beams_.front().log_probability) || (options_.beams == 1 && finished_ > 0))
      done_ = true;
    if (done_ && finished_ == 0) finish(beams_.front());
    return parents;
  }

  std::vector<std::int32_t> take_best() { return std::move(best_.ids); }

 private:
  double score(double log_probability, std::int64_t length) const {
    return log_probability / std::pow((5.0 + static_cast<double>(length)) / 6.0, options_.length_penalty);
  }

  void finish(Hypothesis hypothesis) {
    const double hypothesis_score = score(hypothesis.log_probability, static_cast<std::int64_t>(hypothesis.ids.size()) + 1);
    if (finished_++ == 0 || hypothesis_score > best_score_) {
      best_ = std::move(hypothesis);
      best_score_ = hypothesis_score;
    }
  }

  const TranslateOptions& options_;
  std::int64_t vocabulary_, longest_;
  std::vector<Hypothesis> beams_;
  Hypothesis best_;
  double best_score_ = 0.0;
  std::int64_t finished_ = 0;
  bool done_ = false;
};

// The non-empty sources of one group, decoded together.
void translate_group(Transformer& model, std::span<const std::vector<std::int32_t>* const> sources, const TranslateOptions& options,
                     std::vector<std::vector<std::int32_t>*>& targets) {
  Context& context = model.context();
  const auto& transformer = std::get<EncoderDecoder>(model.architecture());
  const ModelConfig& config = model.config();
  const std::int64_t vocabulary = options.vocabulary > 0 ? std::min(options.vocabulary, config.vocabulary) : config.vocabulary;
  const auto beams = static_cast<std::size_t>(options.beams);

  // Encode once.
  std::vector<std::int32_t> ids, positions, lengths, cross, segments;
  std::vector<Beam> searches;
  std::int64_t capacity = 0;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const std::vector<std::int32_t>& source = *sources[s];
    const auto length = static_cast<std::int64_t>(source.size());
    for (const std::size_t value : {s * beams, beams, ids.size(), source.size()}) cross.push_back(static_cast<std::int32_t>(value));
    ids.insert(ids.end(), source.begin(), source.end());
    const std::vector<std::int32_t> own = positions_from(0, length);
    positions.insert(positions.end(), own.begin(), own.end());
    lengths.push_back(static_cast<std::int32_t>(length));
    const std::int64_t longest = std::min(config.max_positions, 2 * length + 16);
    capacity = std::max(capacity, longest);
    searches.emplace_back(options, vocabulary, longest);
  }
  BatchTensors batch;
  batch.source_ids = ids_tensor(context, ids);
  batch.source_positions = ids_tensor(context, positions);
  batch.source_segments = segments_tensor(context, attention_segments(lengths, lengths, static_cast<std::int64_t>(lengths.size())));
  const std::vector<Variable> keys_and_values = transformer.cross_keys_and_values(context, transformer.encode(context, batch, 0, {}));

  // One token of every hypothesis at a time.
  const std::size_t rows = sources.size() * beams;
  std::vector<KeyValueCache> caches =
      make_caches(context, transformer.decoder_layers(), static_cast<std::int64_t>(rows), capacity, config.d_model);
  std::vector<KeyValueCache> spare =
      beams > 1 ? make_caches(context, transformer.decoder_layers(), static_cast<std::int64_t>(rows), capacity, config.d_model)
                : std::vector<KeyValueCache>();
  DecodeStep step{.cross_segments = segments_tensor(context, cross)};
  for (step.position = 0; step.position < capacity; ++step.position) {
    if (std::all_of(searches.begin(), searches.end(), [](const Beam& search) { return search.done(); })) break;
    std::vector<std::int32_t> last(rows);
    for (std::size_t row = 0; row < rows; ++row) last[row] = searches[row / beams].last(row % beams);
    step.self_segments = self_segments(context, static_cast<std::int64_t>(rows), capacity, step.position, 1);
    const Tensor position_ids = ids_tensor(context, std::vector<std::int32_t>(rows, static_cast<std::int32_t>(step.position)));
    const Tensor logits = transformer.decode(context, ids_tensor(context, last), position_ids, step, caches, keys_and_values).value();
    const std::vector<double> values = read_elements(context, logits);  // [rows, V_padded]

    std::vector<std::int64_t> parents(rows);
    const auto columns = static_cast<std::size_t>(logits.cols());
    for (std::size_t s = 0; s < searches.size(); ++s) {
      const std::vector<std::int64_t> own =
          searches[s].advance(std::span(values).subspan(s * beams * columns, beams * columns), logits.cols());
      for (std::size_t beam = 0; beam < beams; ++beam) parents[s * beams + beam] = static_cast<std::int64_t>(s * beams) + own[beam];
    }
    if (beams > 1) reorder(context, caches, spare, parents, step.position + 1);
  }
  for (std::size_t s = 0; s < searches.size(); ++s) *targets[s] = searches[s].take_best();
}

std::int32_t draw(std::span<const double> logits, const GenerateOptions& options, std::int64_t vocabulary, Random& random) {
  std::vector<std::int32_t> order;
  for (std::int64_t id = 0; id < vocabulary; ++id) {
    if (may_produce(id, vocabulary)) order.push_back(static_cast<std::int32_t>(id));
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
    TW_CHECK_INPUT(static_cast<std::int64_t>(sources[i].size()) <= model.config().max_positions, "source ", i + 1, " has ",
                   sources[i].size(), " tokens, but the model has ", model.config().max_positions,
                   " positions; split it into shorter lines.");
    if (!sources[i].empty()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return sources[a].size() < sources[b].size(); });
  const auto group = static_cast<std::size_t>(std::max<std::int64_t>(1, options.rows / options.beams));
  for (std::size_t first = 0; first < order.size() && !options.interrupted(); first += group) {
    std::vector<const std::vector<std::int32_t>*> group_sources;
    std::vector<std::vector<std::int32_t>*> group_targets;
    for (std::size_t i = first; i < std::min(first + group, order.size()); ++i) {
      group_sources.push_back(&sources[order[i]]);
      group_targets.push_back(&targets[order[i]]);
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
  const std::int64_t capacity = config.max_positions;
  const std::int64_t vocabulary = options.vocabulary > 0 ? std::min(options.vocabulary, config.vocabulary) : config.vocabulary;

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
  }
}

}  // namespace tilewave

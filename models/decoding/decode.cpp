// Decoding: the device computes logits of new tokens against cached keys and values, and ranks those of a text; the host draws, and ranks
// and reorders hypotheses.
#include "models/decoding/decode.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <utility>

#include "framework/tensor/host_tensor.h"
#include "framework/tensor/random.h"
#include "kernels/core/beside_steps.h"
#include "kernels/core/element.h"
#include "kernels/core/memory.h"
#include "models/decoding/beam_search.h"
#include "models/decoding/decode_launches.h"
#include "models/decoding/decoding_memory.h"

namespace tilewave {
namespace {

std::int64_t used_positions(const ModelConfig& config, std::int64_t asked) {
  return asked > 0 ? std::min(asked, config.max_positions) : config.max_positions;
}

std::int64_t used_vocabulary(const ModelConfig& config, std::int64_t asked) {
  return asked > 0 ? std::min(asked, config.vocabulary) : config.vocabulary;
}

// Elements of [rows, cols], copied as they are and widened where they are looked at.
class HostLogits {
 public:
  HostLogits(Context& context, const Tensor& logits)
      : dtype_(logits.dtype()), cols_(logits.cols()), bytes_(static_cast<std::size_t>(logits.shape().elements() * size_of(dtype_))) {
    read_rows(context, logits, bytes_.data());
  }

  std::int64_t cols() const { return cols_; }
  std::vector<double> rows(std::size_t first, std::size_t count) const {
    std::vector<double> values(count * static_cast<std::size_t>(cols_));
    with_element(dtype_, [&]<class T>(T) {
      const std::byte* const begin = bytes_.data() + first * static_cast<std::size_t>(cols_) * sizeof(T);
      for (std::size_t i = 0; i < values.size(); ++i) {
        T element;
        std::memcpy(&element, begin + i * sizeof(T), sizeof(T));
        values[i] = converted<double>(element);
      }
    });
    return values;
  }

 private:
  DType dtype_;
  std::int64_t cols_;
  std::vector<std::byte> bytes_;
};

// The targets of the non-empty sources of one group, decoded together; those whose search is done leave where rows change places anyway, as
// beams do, or half of them are done.
std::vector<std::vector<std::int32_t>> decode_group(Transformer& model, const std::vector<DecodedSource>& sources,
                                                    const TranslateOptions& options) {
  const std::int64_t vocabulary = used_vocabulary(model.config(), options.vocabulary);
  const std::int64_t positions = used_positions(model.config(), options.positions);
  const auto beams = static_cast<std::size_t>(options.beams);
  const auto ids = std::make_shared<const std::vector<std::int32_t>>(options.drawn.below(vocabulary));
  std::vector<BeamSearch> searches;
  std::int64_t capacity = 0;
  for (const DecodedSource& source : sources) {
    const std::int64_t longest = longest_target(source.rows, positions);
    capacity = std::max(capacity, longest);
    searches.emplace_back(BeamOptions{.beams = options.beams,
                                      .length_penalty = options.length_penalty,
                                      .vocabulary = vocabulary,
                                      .longest = longest,
                                      .frame = {.begin = *options.drawn.begin, .end = *options.drawn.end},
                                      .ids = ids});
  }
  SourceGroup launches(model, sources, {.capacity = capacity, .beams = options.beams});

  // One token of every hypothesis at a time.
  std::vector<std::size_t> searching(sources.size());  // which sources' hypotheses the rows are
  std::iota(searching.begin(), searching.end(), std::size_t{0});
  for (std::int64_t position = 0; position < capacity; ++position) {
    std::vector<std::int32_t> last(searching.size() * beams);
    for (std::size_t row = 0; row < last.size(); ++row) last[row] = searches[searching[row / beams]].last(row % beams);
    const HostLogits logits(model.context(), launches.logits(last, position));  // [rows, V_padded]

    std::vector<std::vector<std::int64_t>> beam_parents(searching.size());
    std::size_t still = 0;
    for (std::size_t i = 0; i < searching.size(); ++i) {
      BeamSearch& search = searches[searching[i]];
      beam_parents[i].resize(beams);
      std::iota(beam_parents[i].begin(), beam_parents[i].end(), std::int64_t{0});
      if (!search.done()) beam_parents[i] = search.advance(logits.rows(i * beams, beams), logits.cols());
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
    launches.keep(parents, next);
    searching = std::move(next);
  }
  std::vector<std::vector<std::int32_t>> targets;
  for (BeamSearch& search : searches) targets.push_back(search.take_best());
  return targets;
}

// What may be taken: as asked, or a quarter of what is free, at most a GiB.
std::int64_t most_bytes(Context& context, std::int64_t asked) {
  constexpr std::int64_t kMax = 1 << 30;
  return asked > 0 ? asked : std::min(kMax, free_bytes(context.queue()).value_or(kMax) / 4);
}

// The greatest count up to `most` that fits, found by halving; 1 where none does.
template <class Fits>
std::int64_t halved_until(std::int64_t most, Fits&& fits) {
  while (most > 1 && !fits(most)) most /= 2;
  return most;
}

// Whether it could be done with the memory there is.
template <class Fn>
bool fits_into_memory(Fn&& fn) {
  try {
    fn();
    return true;
  } catch (const OutOfMemory&) {
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

OutOfMemory too_long_a_source(const DecodedSource& source, std::int64_t beams) {
  const bool picture = source.ids.empty();
  return OutOfMemory(concat("there is not enough memory to ",
                            picture ? std::string("say what a picture shows") : concat("translate a sentence of ", source.rows, " tokens"),
                            " by itself, with ", beams, beams == 1 ? " hypothesis" : " hypotheses",
                            "; free some, raise the limit, or take ",
                            beams > 1 ? "fewer beams."
                            : picture ? "a smaller model."
                                      : "shorter sentences."));
}

OutOfMemory too_long_a_text(std::int64_t tokens) {
  return OutOfMemory(concat("there is not enough memory to go on with a text of up to ", tokens,
                            " tokens; free some, raise the limit, or ask for a shorter text."));
}

// How much of a text is cached, no more than it can have tokens, and how many of them are read at once.
struct TextMemory {
  std::int64_t capacity = 1, new_tokens = 1;
};
TextMemory text_memory(Transformer& model, std::int64_t prompt, const GenerateOptions& options) {
  const std::int64_t positions = used_positions(model.config(), options.positions);
  const std::int64_t capacity = std::min(positions, prompt + options.tokens);
  const std::int64_t most_read = std::max(std::min(prompt, positions), capacity == positions ? positions / 2 : 1);
  DecodingMemory memory(decoded_model(model));
  const std::int64_t most = most_bytes(model.context(), options.bytes);
  return {.capacity = capacity, .new_tokens = halved_until(most_read, [&](std::int64_t many) {
                                  return memory.bytes(DecodingMemory::Text{.capacity = capacity, .new_tokens = many}) <= most;
                                })};
}

// The ids of the vocabulary that may be drawn, beside the model.
Tensor drawn_columns(Context& context, const DrawnIds& drawn, std::int64_t vocabulary) {
  const std::vector<std::int32_t> ids = drawn.below(vocabulary);
  const Tensor columns = context.tensor({1, std::ssize(ids)}, DType::i32);
  write_ids(context, columns, ids);
  return columns;
}

// The most probable ids are ranked where the logits lie; only those that are drawn among come to the host.
std::int32_t draw(Context& context, const RankedRow& logits, const GenerateOptions& options, Random& random) {
  const std::int64_t all = logits.columns.cols, asked = options.temperature == 0.0 ? 1 : options.top_k;
  const std::vector<RankedColumn> ranked = largest_of(context.queue(), logits, asked > 0 ? std::min(asked, all) : all);
  if (options.temperature == 0.0) return ranked.front().column;
  std::vector<double> cumulative;
  double sum = 0.0;
  for (const RankedColumn& one : ranked) cumulative.push_back(sum += std::exp((one.value - ranked.front().value) / options.temperature));
  const double point = sum * static_cast<double>(random.next() >> 11) * 0x1p-53;
  const auto chosen = std::upper_bound(cumulative.begin(), cumulative.end(), point) - cumulative.begin();
  return ranked[std::min(static_cast<std::size_t>(chosen), ranked.size() - 1)].column;
}

}  // namespace

namespace {

// The best target of each source that has rows; those of like length are decoded together, since a group takes as long as its longest
// target.
std::vector<std::vector<std::int32_t>> decode_all(Transformer& model, const std::vector<DecodedSource>& sources,
                                                  const TranslateOptions& options) {
  TW_CHECK(options.drawn.begin && options.drawn.end, "translate: a target needs an id that begins it and one that ends it.");
  TW_CHECK_INPUT(options.beams >= 1 && options.beams <= 1024, "the number of beams is ", options.beams, "; it must be from 1 to 1024.");
  const NoGradient scope(model.context());
  std::vector<std::vector<std::int32_t>> targets(sources.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].rows > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return sources[a].rows < sources[b].rows; });
  DecodingMemory memory(decoded_model(model));
  const std::int64_t positions = used_positions(model.config(), options.positions), most = most_bytes(model.context(), options.bytes);
  std::int64_t count = std::max<std::int64_t>(1, options.rows / options.beams);  // of a group; sources become longer, and it smaller
  for (std::size_t next = 0; next < order.size() && !options.interrupted();) {
    count = halved_until(std::min(count, std::ssize(order) - static_cast<std::int64_t>(next)), [&](std::int64_t many) {
      const std::int64_t rows = sources[order[next + static_cast<std::size_t>(many) - 1]].rows;  // sources before it are no longer
      return memory.bytes(DecodingMemory::Group{
                 .sources = many, .source_tokens = rows, .capacity = longest_target(rows, positions), .beams = options.beams}) <= most;
    });
    const std::span<const std::size_t> group = std::span(order).subspan(next, static_cast<std::size_t>(count));
    std::vector<DecodedSource> group_sources;
    for (const std::size_t i : group) group_sources.push_back(sources[i]);
    std::vector<std::vector<std::int32_t>> group_targets;
    if (!fits_into_memory([&] { group_targets = decode_group(model, group_sources, options); })) {
      if (count == 1) throw too_long_a_source(sources[group.back()], options.beams);
      count /= 2;
      continue;
    }
    for (std::size_t i = 0; i < group.size(); ++i) targets[group[i]] = std::move(group_targets[i]);
    next += group.size();
  }
  return targets;
}

}  // namespace

std::vector<std::vector<std::int32_t>> translate(Transformer& model, std::span<const std::vector<std::int32_t>> sources,
                                                 const TranslateOptions& options) {
  TW_CHECK_INPUT(std::holds_alternative<EncoderDecoder>(model.architecture()), "a decoder_only model cannot translate; use generate.");
  TW_CHECK_INPUT(!model.data().picture, "a model that sees pictures cannot translate text; use caption.");
  const std::int64_t positions = used_positions(model.config(), options.positions);
  std::vector<DecodedSource> decoded;
  for (const std::vector<std::int32_t>& source : sources) {
    const std::int64_t tokens = std::ssize(source);
    TW_CHECK_INPUT(tokens <= positions, "source ", decoded.size() + 1, " has ", tokens, " tokens, but the model has ", positions,
                   " positions; split it into shorter lines.");
    decoded.push_back({.rows = tokens, .ids = source, .pixels = {}});
  }
  return decode_all(model, decoded, options);
}

std::vector<std::vector<std::int32_t>> caption(Transformer& model, std::span<const std::vector<std::uint8_t>> pictures,
                                               const TranslateOptions& options) {
  const std::optional<SeenPictures>& seen = model.data().picture;
  TW_CHECK_INPUT(seen, "this model reads tokens and sees no pictures; use translate or generate.");
  const std::int64_t patches = StemShape{.picture = seen->shape, .patch = model.config().patch}.patches();
  std::vector<DecodedSource> decoded;
  for (const std::vector<std::uint8_t>& picture : pictures) {
    TW_CHECK(std::ssize(picture) == seen->shape.values(), "a picture of ", picture.size(), " values is none of ", seen->shape.values(),
             ".");
    decoded.push_back({.rows = patches, .ids = {}, .pixels = picture});
  }
  return decode_all(model, decoded, options);
}

void generate(Transformer& model, std::span<const std::int32_t> prompt, const GenerateOptions& options,
              const std::function<void(std::int32_t)>& token) {
  TW_CHECK_INPUT(std::holds_alternative<DecoderOnly>(model.architecture()), "an encoder_decoder model cannot continue a text; use ",
                 model.data().picture ? "caption." : "translate.");
  TW_CHECK_INPUT(options.temperature >= 0.0 && std::isfinite(options.temperature), "the temperature is ", options.temperature,
                 "; it must be 0 or above.");
  Context& context = model.context();
  const NoGradient scope(context);
  const std::int64_t capacity = used_positions(model.config(), options.positions);
  const std::int64_t vocabulary = used_vocabulary(model.config(), options.vocabulary);

  std::vector<std::int32_t> text(prompt.begin(), prompt.end());
  if (text.empty() && options.drawn.begin) text.push_back(*options.drawn.begin);
  TW_CHECK_INPUT(!text.empty(), "the prompt is empty, and this model's tokenizer has no token that a text begins with; write a word.");
  const TextMemory sizes = text_memory(model, std::ssize(text), options);
  std::int64_t at_once = sizes.new_tokens;
  std::optional<CachedText> launches;
  if (!fits_into_memory([&] { launches.emplace(model, sizes.capacity); })) throw too_long_a_text(sizes.capacity);
  const Tensor columns = drawn_columns(context, options.drawn, vocabulary);
  Random random(random_key(options.seed));
  for (std::int64_t produced = 0; produced < options.tokens; ++produced) {
    // New tokens: all of a prompt, then one by one; where positions run out, the latter half starts anew.
    const auto length = static_cast<std::int64_t>(text.size());
    const std::int64_t cached = launches->cached();
    const bool restart = cached == 0 || cached >= capacity;
    const std::int64_t fresh = restart ? std::min(length, cached == 0 ? capacity : std::max<std::int64_t>(1, capacity / 2)) : 1;
    if (restart) launches->forget();
    Tensor logits;  // [1, V_padded]
    for (std::int64_t read = 0; read < fresh;) {
      const std::int64_t piece = std::min(at_once, fresh - read);
      const std::span<const std::int32_t> tokens(text.end() - fresh + read, static_cast<std::size_t>(piece));
      if (fits_into_memory([&] { logits = launches->logits(tokens); })) {
        read += piece;
      } else {
        if (piece == 1) throw too_long_a_text(sizes.capacity);
        at_once = piece / 2;
      }
    }

    const std::int32_t next = draw(context, {.row = logits.view(), .columns = columns.view()}, options, random);
    if (next == options.drawn.end) return;
    token(next);
    text.push_back(next);
    if (std::ssize(text) > 2 * capacity) text.erase(text.begin(), text.end() - capacity);  // nothing reads further back
  }
}

}  // namespace tilewave

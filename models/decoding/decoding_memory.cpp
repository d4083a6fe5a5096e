// The launches of models/decoding/decode_launches.h on a trace, at the position where most is cached, and what the host keeps of their
// logits.
#include "models/decoding/decoding_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/tensor/arena.h"
#include "models/decoding/decode_launches.h"
#include "models/step/train_step.h"

namespace tilewave {
namespace {

// What is alive at once of what the launches allocate.
template <class Launches>
std::int64_t traced_bytes(Context& context, Launches&& launches) {
  const NoGradient scope(context);
  const auto recorder = std::make_shared<ArenaRecorder>();
  context.record_step_memory(recorder);
  context.begin_step();
  launches();
  context.end_step();
  context.record_step_memory(nullptr);
  return recorder->layout().bytes;
}

}  // namespace

DecodedModel decoded_model(Transformer& model) {
  return {.config = model.config(), .data = model.data(), .device = model.context().device(), .options = model.context().options()};
}

DecodingMemory::DecodingMemory(DecodedModel model)
    : model_(std::move(model)),
      context_(std::make_unique<Context>(TraceQueue{}, model_.device, model_.options)),
      transformer_(std::make_unique<Transformer>(*context_, model_.config, model_.data, 0)) {}

DecodingMemory::~DecodingMemory() = default;

// Logits of all rows as they are, and of one source's rows as doubles with a candidate for each (models/decoding/beam_search.cpp).
std::int64_t DecodingMemory::host_bytes(std::int64_t rows, std::int64_t rows_at_a_time) const {
  constexpr std::int64_t kCandidateBytes = 24;
  if (model_.device.backend != Backend::cpu) return 0;  // it is another memory
  return model_.data.padded_vocabulary *
         (rows * size_of(context_->precision().logits) + rows_at_a_time * (std::int64_t{sizeof(double)} + kCandidateBytes));
}

std::int64_t DecodingMemory::bytes(const Group& group) {
  const std::vector<std::int32_t> source(static_cast<std::size_t>(group.source_tokens));
  const DecodedSource one{.rows = group.source_tokens, .ids = model_.data.picture ? std::span<const std::int32_t>() : source, .pixels = {}};
  const std::vector<DecodedSource> sources(static_cast<std::size_t>(group.sources), one);
  const std::int64_t rows = group.sources * group.beams;
  return traced_bytes(*context_,
                      [&] {
                        SourceGroup launches(*transformer_, sources, {.capacity = group.capacity, .beams = group.beams});
                        launches.logits(std::vector<std::int32_t>(static_cast<std::size_t>(rows)), group.capacity - 1);
                      }) +
         host_bytes(rows, group.beams);
}

std::int64_t DecodingMemory::bytes(const Text& text) {
  return traced_bytes(*context_,
                      [&] {
                        CachedText launches(*transformer_, text.capacity);
                        launches.logits(std::vector<std::int32_t>(static_cast<std::size_t>(text.new_tokens)));
                      }) +
         host_bytes(1, 1);
}

std::int64_t longest_target(std::int64_t source_tokens, std::int64_t positions) { return std::min(positions, 2 * source_tokens + 16); }

std::int64_t least_decoding_bytes(const ResolvedRecipe& resolved, const DeviceInfo& device, std::int64_t source_tokens) {
  DecodingMemory memory({.config = resolved.recipe.model,
                         .data = {.padded_vocabulary = resolved.shapes.vocabulary_padded, .picture = pictures_of(resolved.recipe)},
                         .device = device,
                         .options = context_options(resolved.recipe)});
  return memory.bytes(
      DecodingMemory::Group{.source_tokens = source_tokens, .capacity = longest_target(source_tokens, resolved.recipe.batch.sequence)});
}

}  // namespace tilewave

// Decoding with cached keys and values: greedy and beam search for the encoder-decoder, sampling for the decoder-only model.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/decoding/drawn_ids.h"
#include "models/transformer/transformer.h"

namespace tilewave {

struct TranslateOptions {
  std::int64_t beams = 1;       // 1: greedy
  double length_penalty = 0.6;  // see models/decoding/beam_search.h
  DrawnIds drawn;               // with a begin and an end
  std::int64_t vocabulary = 0;  // of the tokenizer; 0: the model's
  std::int64_t positions = 0;   // that were trained; 0: all of the model's
  std::int64_t rows = 256;      // hypotheses decoded at a time, at most
  std::int64_t bytes =
      0;  // for all that is decoded at a time, at most, but for one source alone; 0: a quarter of what is free, up to 1 GiB
  std::function<bool()> interrupted = [] { return false; };  // asked between groups of rows; the targets not begun then stay empty
};

// The best target of each source, without begin and end. A source without tokens has an empty target; one longer than the
// trained positions is an InputError that says which. Targets end at twice the source's length plus 16, or at the trained positions.
// Where memory runs out fewer sources are decoded at a time; OutOfMemory where one alone is too many.
std::vector<std::vector<std::int32_t>> translate(Transformer& model, std::span<const std::vector<std::int32_t>> sources,
                                                 const TranslateOptions& options = {});

// What pictures [H W, C], a shade for each value, show in words: the best caption of each, without begin and end. Captions end as targets
// do, a picture's patches being its length. InputError where the model sees none.
std::vector<std::vector<std::int32_t>> caption(Transformer& model, std::span<const std::vector<std::uint8_t>> pictures,
                                               const TranslateOptions& options = {});

struct GenerateOptions {
  std::int64_t tokens = 256;
  double temperature = 1.0;  // 0: always the most probable token
  std::int64_t top_k = 0;    // only so many of the most probable tokens; 0: all
  std::uint64_t seed = 1;
  DrawnIds drawn;
  std::int64_t vocabulary = 0;  // of the tokenizer; 0: the model's
  std::int64_t positions = 0;   // that were trained; 0: all of the model's
  std::int64_t bytes = 0;       // for all of it, at most, but for one token alone; 0: a quarter of what is free, up to 1 GiB
};

// Calls `token` with each token as it is drawn; ends after options.tokens or where the model ends the text. Past the trained
// positions the latter half of the text is the prompt of a new start. A prompt that memory is too small for is read in pieces; OutOfMemory
// where it does not even hold what is cached.
void generate(Transformer& model, std::span<const std::int32_t> prompt, const GenerateOptions& options,
              const std::function<void(std::int32_t)>& token);

}  // namespace tilewave

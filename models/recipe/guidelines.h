// The Tensor Core guidelines as pure functions: shapes in, shapes and what was adjusted out. The recipe stays as asked, so that
// applying them again changes nothing; the model and the packing of batches take their sizes from StepShapes.
//   vocabulary         V: what tokenizer, loss, label smoothing, sampling and files know
//   vocabulary_padded  rows of the embeddings and columns of the logits; those from V on are zero for ever and never sampled
//   source_rows, target_rows  rows of the encoder's and decoder's activations in one forward and backward pass. Sequences are
//                      packed into all of them; rows without a token are padding rows, which no loss, norm or tokens/s counts.
// Of a model that sees pictures the vocabulary is its classes, source rows are patches and target rows are pictures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/recipe/config.h"

namespace tilewave {

struct StepShapes {
  std::int64_t vocabulary = 0;
  std::int64_t vocabulary_padded = 0;
  std::int64_t source_rows = 0;  // 0 without an encoder
  std::int64_t target_rows = 0;

  friend bool operator==(const StepShapes&, const StepShapes&) = default;
};

struct Adjustment {
  std::string rule;  // the key in [guidelines]
  std::string what;  // "vocabulary", "target rows", "pitch of the logits"
  std::int64_t from = 0, to = 0;
  std::string why;
  std::int64_t cost_tokens = 0;  // rows added to one forward and backward pass
  std::int64_t cost_bytes = 0;   // added to weights, gradients and moments; for a pitch, to one matrix of target rows

  friend bool operator==(const Adjustment&, const Adjustment&) = default;
};

struct Guided {
  StepShapes shapes;
  std::vector<Adjustment> adjustments;

  friend bool operator==(const Guided&, const Guided&) = default;
};

StepShapes asked_shapes(const Recipe& recipe);

// One guideline each, by its switch in the recipe.
Guided pad_vocabulary(const Recipe& recipe, const StepShapes& shapes);
Guided round_batch(const Recipe& recipe, const StepShapes& shapes);
Guided align_pitch(const Recipe& recipe, const StepShapes& shapes);  // shapes stay: a pitch is how they lie in memory

// All of them, in the guide's order.
Guided apply_guidelines(const Recipe& recipe);
}  // namespace tilewave

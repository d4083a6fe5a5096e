// The weights that a model begins with, from a file of whoever's (docs/use/huggingface.md): F64, F32, F16 or BF16 elements into masters of
// either type, transposed and cut as the names ask.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/nn/parameters.h"

namespace tilewave {

enum class WeightFit : std::uint8_t {
  whole,   // every parameter and every tensor has its counterpart
  partial  // what fits is loaded; the rest keeps its initial values
};

struct InitialWeights {
  std::filesystem::path path;  // empty: the recipe's own
  WeightFit fit = WeightFit::whole;
};

struct WeightFileFacts {
  std::string path;
  std::int64_t bytes = 0;
  std::string sha256;  // 64 hexadecimal digits
};

// Where weights came from, as a run's weights.json keeps it.
struct WeightOrigin {
  std::string source;
  std::string names;  // whose they are
  std::vector<WeightFileFacts> files;
  std::int64_t loaded = 0;                // parameters
  std::vector<std::string> kept_initial;  // parameters that nothing fitted, and why
  std::vector<std::string> left_out;      // tensors that no parameter is made of

  std::vector<std::string> told() const;  // sentences a person should read
};

std::string to_json(const WeightOrigin& origin);

// InputError that names everything missing, surplus and misshapen at once, with both shapes; nothing is written to the model then, and
// nothing where an element is not finite is left out: that is an InputError too, behind which the model is not to be used.
WeightOrigin load_initial_weights(const InitialWeights& wanted, Parameters& parameters);

}  // namespace tilewave

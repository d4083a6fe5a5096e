// --weights and --weights-partial, as the commands have them that take a model's weights from a file.
#pragma once

#include <CLI/CLI.hpp>

#include "models/exchange/initial_weights.h"

namespace tilewave {

struct WeightOptions {
  InitialWeights wanted;

  void add_to(CLI::App& command, const std::string& without);  // what is said of a command without them
  // Before anything is read or made: a path that is not there, --weights-partial alone.
  void check() const;
};

}  // namespace tilewave

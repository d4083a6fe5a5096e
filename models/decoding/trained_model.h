// A model out of a run folder: its recipe, its tokenizer and the weights of its newest valid checkpoint, ready to decode.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/tokenizer.h"
#include "kernels/core/device.h"
#include "kernels/core/queue.h"
#include "models/exchange/initial_weights.h"
#include "models/recipe/recipe.h"
#include "models/transformer/transformer.h"

namespace tilewave {

struct TrainedModel {
  ResolvedRecipe resolved;
  std::optional<Tokenizer> tokenizer;  // none for data that is ids already
  std::int64_t step = 0;               // that the weights were saved after
  std::unique_ptr<Context> context;
  std::unique_ptr<Transformer> model;
  std::vector<std::string>
      notes;  // sentences a person should read: newer checkpoints that are not valid, and whose weights these are instead
};

// A run's recipe as any device can compute it: by tilewave's own GEMMs, and on a CPU in fp32 where it has no such arithmetic.
Recipe decoded_on(Recipe recipe, const DeviceInfo& device);

// With `weights`, those of that file in the place of the checkpoint's (models/exchange/initial_weights.h), and the run may have none.
// On any device, whichever the run had: what one cannot compute in, or has no engine for, is decoded in fp32 on a CPU and by tilewave's own
// GEMMs. The run may go on meanwhile: a checkpoint that it removes is looked for again. InputError where the folder is no run or has no
// valid checkpoint.
TrainedModel open_trained_model(const std::filesystem::path& run_folder, Queue queue, const DeviceInfo& device,
                                const InitialWeights& weights = {});

}  // namespace tilewave

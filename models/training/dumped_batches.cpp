#include "models/training/dumped_batches.h"

#include "models/planning/resolve.h"
#include "models/recipe/corpus_of.h"
#include "models/step/batch_file.h"
#include "models/training/planned_step.h"

namespace tilewave {

void dump_batches(const Recipe& recipe, const DeviceInfo& device, const BatchDump& dump, const TrainingObserver& observer) {
  check_supported(recipe, device.backend);
  check_files(recipe);
  check_tokenizer(recipe);
  const Corpus corpus = read_corpus(recipe, std::nullopt, observer);
  const ResolvedRecipe resolved = resolve_with(corpus, recipe, device);
  BatchStream stream = corpus.training(batch_shape(resolved));
  std::vector<Batch> batches;
  while (std::ssize(batches) < dump.batches) batches.push_back(*stream.next());
  write_safetensors(dump.file, batch_contents(batches));
}

}  // namespace tilewave
